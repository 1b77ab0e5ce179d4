// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/undo.hpp"

#include <string>

#include "base/files.hpp"
#include "vmm/procfs/thread_list.hpp"

namespace ka::host {
namespace {

using base::Result;
using policy::CpuSet;
using policy::ThreadKey;
using policy::plan::Write;

/// A process that got the number later began after the thread that was meant.
bool is_of_same_process(const Occupant& occupant, const ThreadKey& meant) {
  if (meant.pid == meant.tid) return occupant.key == meant;
  return occupant.key.pid == meant.pid && occupant.process_start <= meant.start_time;
}

CpuSet written_by(const Write& write) {
  return write.everywhere ? CpuSet::range(0, policy::kMaxIds - 1) : write.mask();
}

/// The nearest cgroup with a cpuset (proc_cpuset_show() in kernel/cgroup/cpuset.c).
Result<std::string> cpuset_of(const base::ProcFs& proc, int tid) {
  return base::read_file(proc.root() / std::to_string(tid) / "cpuset");
}

/// Empty: it cannot be compared with what this thread may use.
CpuSet starter_mask(const Occupant& occupant, AffinityCalls& calls, const base::ProcFs& proc) {
  const auto cpuset = cpuset_of(proc, occupant.key.tid);
  if (!cpuset || cpuset != cpuset_of(proc, occupant.starter)) return {};
  return calls.get(occupant.starter).value_or(CpuSet{});
}

/// Only with an all-ones mask the kernel shows what a cpuset allows.
Undone restore(const Occupant& occupant, const CpuSet& now, const CpuSet& written,
               AffinityCalls& calls, const base::ProcFs& proc) {
  const auto done = calls.set_everywhere(occupant.key);
  const auto allowed = done ? calls.get(occupant.key.tid) : unexpected(done.error());
  if (!allowed) return is_gone(allowed) ? Undone::kNothing : Undone::kUnseen;
  const bool is_by_others = now != (written & *allowed);
  const CpuSet before = is_by_others ? now : starter_mask(occupant, calls, proc);
  if (before.intersects(*allowed) && !allowed->subset_of(before)) {
    (void)calls.set(occupant.key, before);
  }
  return is_by_others ? Undone::kNothing : Undone::kDone;
}

}  // namespace

Result<Occupant> occupant_of(const base::ProcFs& proc, int tid) {
  const auto group = vmm::thread_group(proc.root(), tid);
  if (!group) return unexpected(group.error());
  const auto thread = proc.stat(*group, tid);
  if (!thread) return unexpected(thread.error());
  const auto main = proc.stat(*group);
  if (!main) return unexpected(main.error());
  const int starter = *group == tid ? thread->ppid : *group;
  return Occupant{{*group, tid, thread->start_time}, main->start_time, starter};
}

Undone undo_mask(const Write& write, AffinityCalls& calls, const base::ProcFs& proc) {
  const auto now = calls.get(write.key.tid);
  const auto occupant = now ? occupant_of(proc, write.key.tid) : unexpected(now.error());
  if (!occupant) return is_gone(occupant) ? Undone::kNothing : Undone::kUnseen;
  if (is_of_same_process(*occupant, write.key)) return Undone::kSameProcess;
  const CpuSet written = written_by(write);
  if (!now->subset_of(written)) return Undone::kNothing;
  return restore(*occupant, *now, written, calls, proc);
}

}  // namespace ka::host
