// SPDX-License-Identifier: Apache-2.0
// Which parts of the agent's work have to be done again (Agent).
#pragma once

namespace ka::agent {

//   part        is stale after                                             is done by
//   ----------  ---------------------------------------------------------  ----------------
//   kTree       containers, cgroups or CPUs came or went, or a cpuset was  run()
//               written
//   kSystem     CPUs came or went, or what is in common or requested       run_background()
//               changed
//   kProcesses  each run                                                   run_background()
//   kNotice     each run                                                   run_background()

/// The parts of the agent's work that have to be done again.
class Stale {
 public:
  enum Part : unsigned { kTree = 1, kSystem = 2, kProcesses = 4, kNotice = 8 };

  void mark(Part part) { parts_ |= part; }
  void mark_if(bool condition, Part part) {
    if (condition) mark(part);
  }
  bool has(Part part) const { return (parts_ & part) != 0; }
  /// Whether it was stale: it is done now.
  bool clear(Part part) {
    const bool was_stale = has(part);
    parts_ &= ~static_cast<unsigned>(part);
    return was_stale;
  }

 private:
  unsigned parts_ = kTree | kSystem;
};

}  // namespace ka::agent
