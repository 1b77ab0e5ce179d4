// The shared pool: the CPUs that belong to no container alone, as kubelet's CPU manager says. The
// proxy stays on them, and so is the VMM born there.
#pragma once

#include <chrono>
#include <filesystem>

#include "affinity/base/result.hpp"
#include "shim-ext/watch/stamp.hpp"

namespace ka::proxy {

class SharedPool {
 public:
  /// How often a running proxy looks whether the pool has changed: kubelet's own period. (A node's
  /// proxies are more than the inotify instances that one user may have.)
  static constexpr std::chrono::milliseconds kPeriod{10'000};

  /// `kubelet_state`: kubelet's file. Empty, or no such file: there is no pool to stay on.
  explicit SharedPool(std::filesystem::path kubelet_state,
                      std::chrono::milliseconds period = kPeriod)
      : file_(std::move(kubelet_state)), period_(period) {}

  std::chrono::milliseconds period() const { return period_; }

  /// Puts this thread onto the pool where the file has changed since the last time. What it may
  /// use stays as it is where there is no pool, or none that our cgroup allows.
  base::Result<void> enter();

 private:
  std::filesystem::path file_;
  std::chrono::milliseconds period_;
  watch::Stamp seen_;
};

}  // namespace ka::proxy
