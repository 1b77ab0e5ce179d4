// SPDX-License-Identifier: Apache-2.0
// Scheduling policies of threads, and refusals on demand.
#pragma once

#include <cerrno>
#include <functional>
#include <map>
#include <set>

#include "affinity/helper/scheduling.hpp"

namespace ka::tests {

class FakeScheduling final : public helper::Scheduling {
 public:
  base::Result<helper::SchedulingPolicy> get(int tid) const override {
    if (gone.contains(tid)) return base::fail_errno(ESRCH, "get");
    return of(tid);
  }

  base::Result<void> set(const policy::ThreadKey& thread,
                         const helper::SchedulingPolicy& policy) const override {
    const int tid = thread.tid;
    if (before_write) before_write(tid);
    if (refused.contains(tid)) return base::fail_errno(refused.at(tid), "set");
    if (gone.contains(tid)) return base::fail_errno(ESRCH, "set");
    ++writes;
    policies[tid] = policy;
    if (after_write) after_write(tid);
    return {};
  }

  bool leaves_some(const policy::CpuSet&) const override { return limited; }

  helper::SchedulingPolicy of(int tid) const {
    const auto found = policies.find(tid);
    return found == policies.end() ? helper::SchedulingPolicy{} : found->second;
  }

  mutable std::map<int, helper::SchedulingPolicy> policies;
  mutable int writes = 0;
  std::map<int, int> refused;  ///< by tid: errno
  std::set<int> gone;
  bool limited = true;
  std::function<void(int tid)> before_write, after_write;
};

}  // namespace ka::tests
