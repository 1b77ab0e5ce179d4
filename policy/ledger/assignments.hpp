// SPDX-License-Identifier: Apache-2.0
// kubelet's PodResources answer, by the names of pods.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "policy/ledger/event.hpp"

namespace ka::policy::ledger {

class Assignments {
 public:
  /// Takes an answer in place of the last. False: it is unchanged.
  bool replace(const ResourcesSeen& seen);
  /// A pod of this name ended: its assignments no longer hold. False: it had none.
  bool forget(std::string_view pod);

  const ResourcesSeen& seen() const { return seen_; }
  /// kubelet has a static policy: a container without CPUs here owns none.
  bool speak_of_cpus() const { return !seen_.allocatable.empty(); }
  std::set<std::string> pods() const;
  std::span<const Assignment> of(std::string_view pod) const;
  /// Null where the answer has no such container. (It lists no init containers that end.)
  const Assignment* find(std::string_view pod, std::string_view container) const;
  CpuSet cpus_of(std::string_view pod) const;
  /// Allocatable CPUs that no container owns.
  const CpuSet& rest() const { return rest_; }
  /// Another number after each change of the allocatable CPUs, or of rest().
  std::uint64_t pool_version() const { return pool_version_; }

 private:
  void update_rest();

  ResourcesSeen seen_;
  CpuSet rest_;
  std::uint64_t pool_version_ = 0;
};

}  // namespace ka::policy::ledger
