// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/noise/tasks.hpp"

#include <utility>
#include <variant>

#include "base/text.hpp"

namespace ka::cli::noise {
namespace {

constexpr int kIdle = 0, kKthreadd = 2;

std::string cgroup_of(const base::ProcFs& proc, int tid) {
  const auto unified = proc.cgroup(tid, "");
  // On a node with version 1 the unified hierarchy is systemd's alone, and binds no CPUs.
  const auto cpuset = proc.cgroup(tid, "cpuset");
  return cpuset ? *cpuset : unified.value_or("");
}

}  // namespace

void Tasks::read(const TraceEvent& event) {
  if (const auto* change = std::get_if<Switch>(&event.body)) {
    read(change->from);
    read(change->to);
  } else if (!std::holds_alternative<Lost>(event.body)) {
    read(event.running);
  }
}

void Tasks::read(int tid) {
  if (tid <= kIdle || known_.contains(tid)) return;
  auto& facts = known_[tid];
  const auto stat = proc_.stat(tid);
  if (!stat) return;
  facts = TaskFacts{.name = base::printable(stat->comm),
                    .is_kernel = tid == kKthreadd || stat->ppid == kKthreadd,
                    .is_bound = !stat->movable,
                    .cgroup = cgroup_of(proc_, tid)};
}

const TaskFacts* Tasks::find(int tid) const {
  const auto found = known_.find(tid);
  return found == known_.end() || !found->second ? nullptr : &*found->second;
}

}  // namespace ka::cli::noise
