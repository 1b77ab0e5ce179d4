// SPDX-License-Identifier: Apache-2.0
// One pass along the line: observe -> plan -> diff -> apply -> read again, for a set of sandboxes
// at once, so that what one of them gives up is free before another one takes it.
#pragma once

#include <string>
#include <vector>

#include "affinity/board/outcome.hpp"
#include "affinity/line/apply.hpp"
#include "affinity/line/cgroup_keeper.hpp"
#include "affinity/line/node.hpp"
#include "base/result.hpp"
#include "base/thread_stats.hpp"
#include "policy/plan/diff.hpp"

namespace ka::line {

using board::Outcome;

/// All that the plan wants, or only what takes CPUs away.
enum class Extent { kAll, kNarrow };

class Pass {
 public:
  /// `node` must outlive it. What is not certain yet after a start is not widened, whatever the
  /// extent.
  Pass(Node& node, Extent extent);

  /// Brings the sandboxes to their plans. Where something changed underneath, again, a few times.
  void run(Affected sandboxes);
  /// Plans one sandbox, and writes only what takes CPUs away, where its plan, made from what was
  /// last observed, takes something away.
  void narrow(Sandbox& sandbox);

  Extent extent() const { return extent_; }
  const Outcome& outcome() const { return outcome_; }
  /// Sandboxes whose VMM was found gone.
  const Ids& ended() const { return ended_; }

 private:
  using Placements = std::vector<policy::plan::ThreadPlacement>;

  /// Leaves those that are there to be seen, and returns those that are not to be seen now.
  Affected observe(Affected& sandboxes);
  bool observe_one(Sandbox& sandbox);
  base::Result<void> observe_fully(Sandbox& sandbox);
  void report_trouble(const Sandbox& sandbox, bool was_seen);
  bool narrows(Sandbox& sandbox);

  // Threads (pass.cpp).
  void narrow_unseen(const Affected& sandboxes);
  Affected apply_all(const Affected& sandboxes);
  Affected apply_to(const Affected& sandboxes);
  Affected write_masks(const Affected& sandboxes);
  Placements placements_to_write(const Sandbox& sandbox);
  Placements originals_of(const Sandbox& sandbox) const;
  Placements within(Extent extent, const Sandbox& sandbox, Placements placements) const;
  Placements placements_of_unseen(const Sandbox& sandbox);
  static void accept_given_back(const policy::plan::Write& write, Sandbox& sandbox,
                                WriteResult& result);
  void record(Sandbox& sandbox, const WriteResult& result);

  // Cgroups, interrupts and resource classes (pass_keepers.cpp).
  void widen_cgroup(Sandbox& sandbox);
  CgroupWriter cgroup_writer(const Sandbox& sandbox);
  bool narrow_cgroup(Sandbox& sandbox);
  void report_overwritten_cgroup(const Sandbox& sandbox) const;
  void report_cgroup_problem(Sandbox& sandbox, const char* attempt) const;
  void record_cgroup_write(const Sandbox& sandbox);
  void place_interrupts(Sandbox& sandbox);
  void place_classes(Sandbox& sandbox);
  bool interrupts_must_leave(const Sandbox& sandbox) const;

  Node& node_;
  Extent extent_;
  base::ThreadStats stats_;
  Outcome outcome_;
  Ids ended_;
};

/// How to treat the cgroup of a sandbox.
CgroupMode cgroup_mode(const Node& node, const Sandbox& sandbox);

/// Whether the VMM of a sandbox is gone, by what came of observing it. "No such file" alone is not
/// believed: the kernel must know no such process either.
bool has_ended(const Node& node, const Sandbox& sandbox, const base::Error& error);

/// CPUs of other pods that a sandbox may use, by the masks that were read last.
policy::CpuSet touched_by(const Node& node, const Sandbox& sandbox);
/// Records them.
void record_trespass(Node& node, const Sandbox& sandbox);

}  // namespace ka::line
