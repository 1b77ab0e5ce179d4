// SPDX-License-Identifier: Apache-2.0
// The shared pool: the CPUs that no container owns, by kubelet's CPU manager. The
// proxy runs there. It starts the real shim there and on the pod's own CPUs, so that the VMM is
// born on no CPU of another pod. Afterwards the daemon places the proxy as it places the shim;
// while the daemon is away the proxy only leaves CPUs.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "policy/facts/id_set.hpp"
#include "shim-ext/watch/stamp.hpp"

namespace ka::proxy {

class SharedPool {
 public:
  /// How often a running proxy checks whether the pool has changed: kubelet's own period. (A node's
  /// proxies are more than the inotify instances that one user may have.)
  static constexpr std::chrono::seconds kPeriod{10};

  /// `kubelet_state`: kubelet's file. Empty, or no such file: there is no pool to stay on.
  explicit SharedPool(std::filesystem::path kubelet_state);

  /// What this thread could use before it was confined; empty: that could not be read.
  const policy::CpuSet& before() const { return before_; }
  /// The pod that the proxy works for, whose own CPUs it need not leave.
  void set_pod(std::string pod_uid) { pod_uid_ = std::move(pod_uid); }

  /// Confines this thread to the pool. What it may use stays as it is where there is no pool, or
  /// none that our cgroup allows.
  base::Result<void> confine();
  /// The same, to the pool and the pod's own CPUs: the place to start the real shim, because
  /// runtime-rs (CpuInfo::adjust_config()) and the Go runtime before 3.10 (defaultMaxVCPUs()) give
  /// a VM no more vCPUs than its shim has CPUs.
  base::Result<void> confine_with_own();
  /// Takes this thread off CPUs that kubelet has given to other pods since the last time; where
  /// that leaves none, onto the pool. It never widens: that is for the daemon.
  base::Result<void> leave_others();

 private:
  struct Partition {
    policy::CpuSet pool;
    policy::CpuSet own;  ///< CPUs of the proxy's own pod
  };

  /// An empty pool: nothing to follow.
  base::Result<Partition> read();
  /// The same, where the file has changed since it was last read; else an empty pool.
  base::Result<Partition> read_changed();

  std::filesystem::path file_;
  policy::CpuSet before_;
  std::string pod_uid_;
  watch::Stamp seen_;
};

}  // namespace ka::proxy
