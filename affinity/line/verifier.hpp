// SPDX-License-Identifier: Apache-2.0
// verify: re-reads the kernel and checks the invariants. It trusts neither what was last
// seen nor what was written.
#pragma once

#include <vector>

#include "affinity/host/tenants.hpp"
#include "affinity/line/node.hpp"
#include "affinity/line/report.hpp"
#include "base/result.hpp"
#include "policy/plan/invariants.hpp"

namespace ka::line {

class Verifier {
 public:
  /// `node` must outlive it.
  explicit Verifier(Node& node) : node_(node) {}

  /// Re-reads the kernel. What could not be read is a finding of its own. Writes nothing.
  VerifyReport verify();

 private:
  void collect_unproved();
  void check(Sandbox& sandbox);
  void record_unread(const Sandbox& sandbox, const base::Error& error);
  void check_released(const Sandbox& sandbox);
  void count_threads(const Sandbox& sandbox);
  void check_isolation(Sandbox& sandbox);
  void check_plan(const Sandbox& sandbox);
  void check_grade(const Sandbox& sandbox);
  void collect_dedicated(const Sandbox& sandbox);
  host::Tenants read_tenants() const;
  void check_sources();
  void check_owners(const host::Tenants& tenants);
  void check_others(const host::Tenants& tenants);
  void add(std::vector<Finding> findings);

  Node& node_;
  VerifyReport report_;
  std::vector<policy::plan::DedicatedVcpu> dedicated_;
};

}  // namespace ka::line
