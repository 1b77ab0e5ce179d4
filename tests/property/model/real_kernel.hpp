// SPDX-License-Identifier: Apache-2.0
// The kernel that runs the test, beside the model's: each VMM is a process with threads that sleep,
// in a cpuset cgroup of its own, and has the masks that the model's VMM was given.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>

#include "base/fd.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::model {

class RealKernel {
 public:
  /// `cgroup`: a directory of cgroup v2 that is made, and removed in the end; as root.
  explicit RealKernel(std::filesystem::path cgroup);
  RealKernel(const RealKernel&) = delete;
  RealKernel& operator=(const RealKernel&) = delete;
  /// All CPUs are online again.
  ~RealKernel();

  /// Before Linux 6.2 a write to a cpuset makes it forget own masks.
  static bool forgets();

  // `pid` and `tid` are the model's numbers.
  void boot(const std::string& pod, int pid);
  void plug(int pid, int tid);
  void unplug(int pid, int tid);
  void end(int pid);

  /// Of the call that sets it; 0: it was set.
  int set_mask(int pid, int tid, const policy::CpuSet& mask);
  /// A thread that has another mask than in `masks`; empty: there is none. Waits for what CPU
  /// hot-plug leaves to a worker.
  std::string difference(const std::map<int, policy::CpuSet>& masks) const;

  void confine(const std::string& pod, const policy::CpuSet& cpus);
  void set_online(const policy::CpuSet& online);

 private:
  struct Vmm {
    pid_t pid = 0;
    std::string pod;
    base::Fd socket;          ///< a byte asks for a thread, whose number is the answer
    std::map<int, int> tids;  ///< real ones by the model's
  };

  std::string difference_now(const std::map<int, policy::CpuSet>& masks) const;
  std::filesystem::path folder(const std::string& pod) const { return cgroup_ / "pods" / pod; }

  std::filesystem::path cgroup_;
  std::map<int, Vmm> vmms_;  ///< by the model's pid
  policy::CpuSet online_;
};

}  // namespace ka::model
