// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/kernel_mask_guard.hpp"

#include <utility>

namespace ka::helper {

base::Result<void> KernelMaskGuard::remember() {
  return is_due_ ? base::Result<void>() : add(threads_.read());
}

base::Result<void> KernelMaskGuard::remember_known() {
  if (is_due_) return {};
  return add(known_.empty() ? threads_.read() : threads_.read_again(known_));
}

/// What could not be given back before is older, and stays. What the kernel binds is refused by it.
base::Result<void> KernelMaskGuard::add(const base::Result<std::vector<HostMask>>& masks) {
  if (!masks) return unexpected(masks.error());
  for (const HostMask& mask : *masks) {
    if (mask.fixed != kBoundByKernel) saved_.try_emplace(mask.name, mask.cpus);
  }
  is_due_ = true;
  is_recorded_ = false;
  return {};
}

bool KernelMaskGuard::record() {
  if (is_due_ && !is_recorded_) is_recorded_ = save_();
  return !is_due_ || is_recorded_;
}

/// Masks of an earlier helper that was killed are given back, too.
void KernelMaskGuard::restore(bool has_partitions) {
  if (!std::exchange(is_due_, false) && saved_.empty() && !has_partitions) return;
  auto now = threads_.read();
  if (!now) return;
  Saved refused;
  for (HostMask& mask : *now) {
    const auto wanted = saved_.find(mask.name);
    if (wanted == saved_.end() || wanted->second == mask.cpus) continue;
    if (mask.fixed == kBoundByKernel) continue;
    const auto done = threads_.write(mask, wanted->second);
    if (done) mask.cpus = wanted->second;
    if (!done && !is_gone(done)) refused.insert(*wanted);
  }
  saved_ = std::move(refused);
  known_ = *std::move(now);
}

}  // namespace ka::helper
