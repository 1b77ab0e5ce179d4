// SPDX-License-Identifier: Apache-2.0
// Kernel threads with the masks that they would have without partitions: what the kernel has
// overwritten with a partition, and cannot be given back before its CPUs return
// (KernelMaskGuard), is nobody's wish.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "affinity/helper/host_masks.hpp"

namespace ka::helper {

class GuardedThreads final : public HostMasks {
 public:
  struct Overwritten {
    /// What a thread had, by its name; absent: it has it still.
    std::function<std::optional<policy::CpuSet>(const std::string& thread)> find;
    /// It has been given another mask.
    std::function<void(const std::string& thread)> forget;
    /// Has what was forgotten on disk.
    std::function<void()> save;
  };

  GuardedThreads(std::unique_ptr<const HostMasks> threads, Overwritten overwritten)
      : threads_(std::move(threads)), overwritten_(std::move(overwritten)) {}

  std::string_view kind() const override { return threads_->kind(); }
  /// What write() has forgotten is on disk when it returns.
  base::Result<std::vector<HostMask>> read() const override;
  /// kTransient, too, where the kernel has none of these CPUs for it now.
  base::Result<void> write(const HostMask& mask, const policy::CpuSet& cpus) const override;

 private:
  std::unique_ptr<const HostMasks> threads_;
  Overwritten overwritten_;
  mutable bool is_saved_ = true;
};

}  // namespace ka::helper
