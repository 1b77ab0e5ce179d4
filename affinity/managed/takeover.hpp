// SPDX-License-Identifier: Apache-2.0
// On the way to mode = "managed": what it would make of the containers that the runtime has. Keeps
// them in view, and changes nothing.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "policy/facts/topology.hpp"
#include "policy/managed/rules.hpp"
#include "policy/managed/trial.hpp"
#include "shim-ext/nri/allocator.hpp"

namespace ka::managed {

class Takeover final : public nri::Allocator {
 public:
  explicit Takeover(policy::managed::Rules rules) : rules_(std::move(rules)) {}

  /// On this machine. The error: the settings of the mode are wrong, or the runtime has not
  /// reported its containers.
  base::Result<policy::managed::Trial> trial(const policy::Topology& topology) const;

  base::Result<void> create(const nri::Described& container) override;
  base::Result<void> resize(const std::string& container, std::int64_t quota,
                            std::int64_t period) override;
  void end(const std::string& container) override;
  void synchronize(const std::vector<nri::Described>& all,
                   const std::set<std::string>& sandboxes) override;
  bool adopt(const nri::Described& container) override;
  void forget(const std::vector<policy::ledger::Event>& events) override;
  nri::Updates updates() override { return {}; }
  void complete(std::vector<policy::ledger::Event>& events) override;
  void apply() override {}
  void apply_at_once() override {}

 private:
  void keep(const nri::Described& container);

  policy::managed::Rules rules_;
  std::map<std::string, policy::managed::Listed> listed_;  ///< by container
  bool synchronized_ = false;
};

}  // namespace ka::managed
