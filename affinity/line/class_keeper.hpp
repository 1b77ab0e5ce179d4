// SPDX-License-Identifier: Apache-2.0
// What the resource classes of one sandbox's containers come to: the nice values of its vCPUs'
// threads, and weight and limits of its cgroup's block I/O. Actual, planned and original values.
//
// Other programs may write them, too; such writes are reverted with growing delays.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "affinity/host/affinity_calls.hpp"
#include "affinity/host/cpuset_writer.hpp"
#include "affinity/line/class_attempts.hpp"
#include "affinity/line/io_max_keeper.hpp"
#include "affinity/line/nice.hpp"
#include "affinity/line/views.hpp"
#include "affinity/state/store.hpp"
#include "base/result.hpp"
#include "base/thread_stats.hpp"
#include "policy/facts/sandbox.hpp"
#include "policy/plan/resource_classes.hpp"

namespace ka::line {

/// What the keeper writes with.
struct ClassWriters {
  host::AffinityCalls& calls;
  base::ThreadStats& stats;  ///< of the pass
  host::CpusetWriter& cgroups;
};

class ClassKeeper {
 public:
  using Time = ClassAttempts::Time;

  /// Reads what vCPU threads and the cgroup have, where a class is asked for or something of ours
  /// is there. `cgroup`: the sandbox's own; empty: it has none.
  void observe(host::AffinityCalls& calls, base::ThreadStats& stats,
               const std::vector<policy::ThreadFacts>& threads, const std::string& cgroup,
               bool is_requested);
  void set_plan(policy::plan::ClassPlan plan);

  const ClassView& view() const { return view_; }

  /// Records what will be written, with what is there now. True when that is new: it must be saved
  /// before place(), for a restart to know it.
  bool prepare();
  /// Writes what the plan wants and prepare() has recorded: `is_recorded`, it is on disk. What the
  /// plan leaves alone is given back.
  ClassWrites place(const ClassWriters& writers, Time now, bool is_recorded);
  /// Gives back all that we wrote; what others wrote since stays.
  ClassWrites give_back(const ClassWriters& writers);

  /// Remembers the values as the line leaves them.
  void remember();
  /// False when something of ours differs from how the line left it, or it is time to try again.
  bool is_unchanged(host::AffinityCalls& calls, Time now) const;
  /// How many values that we wrote another program has changed.
  int count_changed(host::AffinityCalls& calls) const;
  /// What the kernel refused is tried again.
  void retry_refused() { attempts_.retry_refused(); }

  state::SavedClasses saved() const;
  void restore(const state::SavedClasses& saved);

 private:
  /// What we have there: the record, and what we wrote since the daemon's start.
  template <typename Saved>
  struct Held {
    Saved saved;
    std::optional<int> written;
  };
  using HeldNice = Held<state::SavedNice>;
  using HeldWeight = Held<state::SavedIoWeight>;

  struct Vcpu {
    policy::ThreadKey key;
    int index = -1;
  };

  void read_nices(host::AffinityCalls& calls, base::ThreadStats& stats);
  void read_weight();
  void evaluate();
  bool is_refused(const std::string& name) const { return !attempts_.refusal_of(name).empty(); }
  void place_nice(const ClassWriters& writers, NiceView& view, ClassWrites& writes);
  static base::Result<void> write(const ClassWriters& writers, const NiceWrite& write, int before,
                                  ClassWrites& writes);
  void place_weight(const ClassWriters& writers, ClassWrites& writes);
  bool give_back(const ClassWriters& writers, const HeldNice& held, ClassWrites& writes);
  bool give_back(const ClassWriters& writers, const HeldWeight& held, ClassWrites& writes);

  ClassView view_;
  std::string cgroup_;
  std::vector<Vcpu> vcpus_;  ///< as last observed
  std::map<policy::ThreadKey, HeldNice> nices_;
  std::optional<HeldWeight> weight_;
  std::map<policy::ThreadKey, int> left_;
  std::optional<int> left_weight_;
  IoMaxKeeper io_max_;
  ClassAttempts attempts_;
};

}  // namespace ka::line
