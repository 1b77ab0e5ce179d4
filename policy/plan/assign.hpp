// SPDX-License-Identifier: Apache-2.0
// Which CPUs the exclusive containers of a sandbox own, and how many vCPUs they get for them.
#pragma once

#include <cstddef>
#include <vector>

#include "policy/facts/id_set.hpp"
#include "policy/facts/sandbox.hpp"
#include "policy/facts/topology.hpp"
#include "policy/plan/bounds.hpp"

namespace ka::policy::plan {

/// CPUs with the same owners. Where no containers overlap, that is one holding a container; where
/// they do (init and app containers of one pod), no vCPU ever leaves the CPUs of any container that
/// it serves, because it stays inside one holding.
struct OwnedSet {
  std::vector<std::size_t> owners;  ///< positions in SandboxFacts::containers, ascending
  CpuSet cpus;                      ///< as owned, without the core set aside for housekeeping
  CpuSet usable;                    ///< what of it is online, allowed and not contested
  int vcpus = 0;                    ///< how many vCPUs serve it

  /// One vCPU for each CPU. Else its vCPUs share the usable CPUs: group affinity.
  bool dedicated() const { return vcpus > 0 && cpus == usable && vcpus == usable.size(); }
};

struct Assignment {
  std::vector<OwnedSet> holdings;  ///< by smallest owner, then lowest CPU
  CpuSet set_aside;                ///< a core taken from the owners for housekeeping = isolate
  CpuSet dedicated;                ///< the CPUs of all dedicated vCPUs
  /// Containers that share one vCPU, because there are fewer vCPUs than containers.
  std::vector<std::size_t> sharing;
  int floating = 0;  ///< vCPUs that serve no exclusive container
};

/// `isolate`: set aside the lowest owned core whose loss leaves every exclusive container a CPU;
/// where there is none, `set_aside` stays empty.
Assignment assign(const Topology& topology, const SandboxFacts& sandbox, const Bounds& bounds,
                  bool isolate);

}  // namespace ka::policy::plan
