// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/kernel_mask_guard.hpp"

#include <utility>

namespace ka::helper {

bool KernelMaskGuard::remember() { return is_due_ || record(threads_.read()); }

bool KernelMaskGuard::remember_known() {
  if (known_.empty()) return remember();
  return is_due_ || record(threads_.read_again(known_));
}

/// What could not be given back before is older, and stays.
bool KernelMaskGuard::record(const base::Result<std::vector<HostMask>>& masks) {
  if (!masks) return false;
  for (const HostMask& mask : *masks) saved_.try_emplace(mask.name, mask.cpus);
  is_due_ = true;
  return save_();
}

/// Masks of an earlier helper that was killed are given back, too.
void KernelMaskGuard::restore() {
  if (!std::exchange(is_due_, false) && saved_.empty()) return;
  auto now = threads_.read();
  if (!now) return;
  Saved refused;
  for (HostMask& mask : *now) {
    const auto wanted = saved_.find(mask.name);
    if (wanted == saved_.end() || wanted->second == mask.cpus) continue;
    const auto done = threads_.write(mask, wanted->second);
    if (done) mask.cpus = wanted->second;
    if (!done && done.error().code != base::ErrorCode::kGone) refused.insert(*wanted);
  }
  saved_ = std::move(refused);
  known_ = *std::move(now);
}

}  // namespace ka::helper
