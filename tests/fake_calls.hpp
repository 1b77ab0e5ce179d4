// SPDX-License-Identifier: Apache-2.0
// The kernel's part in placing threads, played: masks within what a cgroup allows, faults on
// demand, and a list of every write.
#pragma once

#include <cerrno>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "affinity/host/affinity_calls.hpp"

namespace ka::tests {

class FakeCalls final : public host::AffinityCalls {
 public:
  using CpuSet = policy::CpuSet;

  explicit FakeCalls(CpuSet machine) : machine_(std::move(machine)) {}

  bool exists(int, int tid) override { return !gone.contains(tid); }

  base::Result<CpuSet> get(int tid) override {
    if (const int number = next_fault(get_faults, tid); number != 0) {
      return base::fail_errno(number, "get");
    }
    return effective(tid);
  }

  base::Result<void> set(const policy::ThreadKey& thread, const CpuSet& cpus) override {
    const int tid = thread.tid;
    if (before_write) before_write(tid);
    writes.emplace_back(tid, cpus);
    if (const int number = next_fault(set_faults, tid); number != 0) {
      return base::fail_errno(number, "set");
    }
    if (!cpus.intersects(allowed(tid))) return base::fail_errno(EINVAL, "set");
    own[tid] = cpus;
    if (after_write) after_write(tid);
    return {};
  }

  base::Result<void> set_everywhere(const policy::ThreadKey& thread) override {
    return set(thread, CpuSet::range(0, policy::kMaxIds - 1));
  }

  base::Result<int> nice(int tid) override {
    if (gone.contains(tid)) return base::fail_errno(ESRCH, "nice");
    if (const int number = next_fault(get_nice_faults, tid); number != 0) {
      return base::fail_errno(number, "nice");
    }
    const auto found = nices.find(tid);
    return found == nices.end() ? 0 : found->second;
  }

  base::Result<void> set_nice(const policy::ThreadKey& thread, int value) override {
    const int tid = thread.tid;
    if (before_write) before_write(tid);
    if (const int number = next_fault(nice_faults, tid); number != 0) {
      return base::fail_errno(number, "set_nice");
    }
    nices[tid] = value;
    if (after_write) after_write(tid);
    return {};
  }

  /// What the kernel's sched_getaffinity would give (kernel/sched/core.c): the mask within the
  /// cgroup's set, or all of that set when they have nothing in common.
  CpuSet effective(int tid) const {
    const CpuSet within = allowed(tid);
    const auto found = own.find(tid);
    if (found == own.end() || !found->second.intersects(within)) return within;
    return found->second & within;
  }

  CpuSet allowed(int tid) const { return cgroup_of ? cgroup_of(tid) & machine_ : machine_; }

  using Faults = std::map<int, std::pair<int, int>>;  ///< by tid: errno, how often

  std::map<int, CpuSet> own;  ///< masks that were set
  std::map<int, int> nices;   ///< that were set; 0 without
  Faults set_faults, get_faults, nice_faults, get_nice_faults;
  std::set<int> gone;
  std::vector<std::pair<int, CpuSet>> writes;
  std::function<CpuSet(int)> cgroup_of;
  std::function<void(int)> before_write, after_write;

 private:
  /// The errno of a call that is to fail; 0: it is to succeed.
  static int next_fault(Faults& faults, int tid) {
    const auto fault = faults.find(tid);
    if (fault == faults.end()) return 0;
    const int number = fault->second.first;
    if (--fault->second.second == 0) faults.erase(fault);
    return number;
  }

  CpuSet machine_;
};

}  // namespace ka::tests
