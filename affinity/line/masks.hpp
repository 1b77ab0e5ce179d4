// SPDX-License-Identifier: Apache-2.0
// The masks of a sandbox's threads between two runs of the line: what each
// had before us, how the line left it, which threads the kernel refuses to place.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "affinity/host/affinity_calls.hpp"
#include "affinity/line/views.hpp"
#include "affinity/state/store.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::line {

/// A mask that another program changed. Valid as long as the thread's view is.
struct ChangedMask {
  const ThreadView* thread = nullptr;
  policy::CpuSet left;  ///< as the line left it
  policy::CpuSet now;
};

class Masks {
 public:
  using Originals = std::map<int, state::Original>;  ///< by pid

  /// Remembers the masks as the line leaves them: whatever differs from them later is the work of
  /// another program, also when `verify` has seen it before.
  void remember(const std::vector<ThreadView>& threads);
  /// Every mask still reads as the line left it.
  bool are_as_left(const std::vector<ThreadView>& threads, host::AffinityCalls& calls) const;
  /// Living threads whose mask is another one than it was left with, and not what they should have.
  std::vector<ChangedMask> changed(const std::vector<ThreadView>& threads,
                                   host::AffinityCalls& calls) const;

  /// Remembers what a process had before us, when its first thread is first seen. `allowed` is what
  /// its cgroup allows.
  void remember_original(const ThreadView& thread, const policy::CpuSet& allowed);
  /// True where something is remembered that was not at the last call.
  bool prepare() { return std::exchange(is_new_, false); }
  /// Forgets the processes that are not there any more.
  void keep_originals(const std::function<bool(int pid)>& is_there);
  /// What the threads of a process would have without any program of ours; empty: not known. To a
  /// thread whose mask and cgroup have no CPU in common the kernel gives all that the cgroup has
  /// (guarantee_online_cpus() in kernel/cgroup/cpuset.c).
  policy::CpuSet original_of(int pid, const policy::CpuSet& allowed) const;
  /// What the shim proxy could use before it narrowed itself. It did so before any process of the
  /// sandbox was born, so this stands for what they were first seen with.
  void set_narrowed_by_proxy(std::optional<policy::CpuSet> cpus) {
    narrowed_by_proxy_ = std::move(cpus);
  }

  /// From now on any thread may have a mask of ours, also where the kernel shows all that the
  /// cgroup allows: of a mask it shows what the cgroup and offline CPUs leave.
  void set_placed();
  /// A thread has its original mask again.
  void set_freed(const policy::ThreadKey& thread) { freed_.insert(thread); }
  bool is_to_be_freed(const policy::ThreadKey& thread) const;

  /// The kernel refuses to place the thread, for this reason.
  void refuse(const policy::ThreadKey& thread, std::string reason);
  /// Null: it was not refused.
  const std::string* refusal(const policy::ThreadKey& thread) const;
  /// Refused threads are tried again.
  void retry_refused() { refused_.clear(); }

  const Originals& originals() const { return originals_; }
  void restore(Originals originals) { originals_ = std::move(originals); }

 private:
  const state::Original* inherited(const ThreadView& thread, const policy::CpuSet& allowed) const;
  /// As the line left a thread; null: it has not seen it yet.
  const policy::CpuSet* left(int tid) const;

  std::vector<std::pair<int, policy::CpuSet>> left_;  ///< by ascending tid
  Originals originals_;
  bool is_new_ = false;  ///< some of these
  bool is_placed_ = false;
  std::set<policy::ThreadKey> freed_;  ///< since then
  std::optional<policy::CpuSet> narrowed_by_proxy_;
  std::map<policy::ThreadKey, std::string> refused_;
};

}  // namespace ka::line
