// SPDX-License-Identifier: Apache-2.0
// The VM sandboxes of the node, and the load that floating vCPUs of all of them put on each CPU.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "policy/ledger/ledger.hpp"
#include "policy/plan/plan.hpp"

namespace ka::state {
struct Saved;
}

namespace ka::line {

class Sandbox;
using Affected = std::vector<Sandbox*>;
using Ids = std::set<std::string, std::less<>>;

class Sandboxes {
 public:
  using Map = std::map<std::string, std::unique_ptr<Sandbox>, std::less<>>;

  Sandboxes();
  ~Sandboxes();

  Sandbox* find(std::string_view id) const;
  /// By id, ascending.
  Affected all() const;
  Map::const_iterator begin() const { return map_.begin(); }
  Map::const_iterator end() const { return map_.end(); }
  std::size_t size() const { return map_.size(); }

  /// Makes the sandbox of a record that has a VMM, unless it is there.
  void add(const policy::ledger::PodRecord& pod);
  void remove(std::string_view id);
  /// As it was before a restart.
  void restore(const state::Saved& saved);
  /// The VM of sandbox `former` is that of `pod`: the latter has what the VM had without us.
  void hand_over(std::string_view former, const policy::ledger::PodRecord& pod);
  void set_plan(Sandbox& sandbox, policy::plan::SandboxPlan plan, policy::CpuSet doubted);

  /// Floating vCPUs on each CPU, without those of one sandbox (policy/plan: add_floating_load).
  std::vector<int> floating_load_beside(const Sandbox& sandbox) const;

 private:
  void count_floating(const Sandbox& sandbox, int each);

  Map map_;
  std::vector<int> floating_load_;
};

}  // namespace ka::line
