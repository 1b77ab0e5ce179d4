// SPDX-License-Identifier: Apache-2.0
// How long vCPUs were ready to run and had to wait for a CPU: what hypervisors call CPU ready or
// steal, seen from the host.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/engine/views.hpp"
#include "policy/facts/sandbox.hpp"
#include "policy/plan/plan.hpp"

namespace ka::engine {

/// Sums over the vCPUs that serve a container. A vCPU that ends, or that serves another container
/// from now on, takes nothing of the sum with it: sums never fall.
class VcpuWaits {
 public:
  /// Nanoseconds by container id; "" stands for the vCPUs that serve no container alone.
  using ByContainer = std::map<std::string, std::uint64_t>;

  /// Reads the second field of /proc/<pid>/task/<tid>/schedstat (sched_info.run_delay in
  /// nanoseconds; proc_pid_schedstat in fs/proc/base.c) for each vCPU. One that cannot be read adds
  /// nothing this time.
  void read(const std::filesystem::path& proc, const std::string& sandbox,
            const std::vector<ThreadView>& threads, const policy::plan::SandboxPlan& plan);
  void forget(std::string_view sandbox);

  /// By sandbox.
  const std::map<std::string, ByContainer, std::less<>>& sums() const { return sums_; }

 private:
  std::map<std::string, ByContainer, std::less<>> sums_;
  /// By sandbox: what each vCPU's counter said last.
  std::map<std::string, std::map<policy::ThreadKey, std::uint64_t>, std::less<>> last_;
};

}  // namespace ka::engine
