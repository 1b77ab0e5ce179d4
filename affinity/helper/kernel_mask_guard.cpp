// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/kernel_mask_guard.hpp"

#include <utility>

namespace ka::helper {

bool KernelMaskGuard::remember() {
  if (is_due_) return true;
  const auto now = threads_.read();
  if (!now) return false;
  Saved masks;
  for (const HostMask& mask : *now) masks[mask.name] = mask.cpus;
  return record(masks);
}

bool KernelMaskGuard::remember_known() {
  if (is_due_) return true;
  return known_.empty() ? remember() : record(known_);
}

/// What could not be given back before is older, and stays.
bool KernelMaskGuard::record(const Saved& masks) {
  saved_.insert(masks.begin(), masks.end());
  is_due_ = save_();
  return is_due_;
}

/// Masks of an earlier helper that was killed are given back, too.
void KernelMaskGuard::restore() {
  if (!std::exchange(is_due_, false) && saved_.empty()) return;
  const auto now = threads_.read();
  if (!now) return;
  Saved refused;
  known_.clear();
  for (const HostMask& mask : *now) {
    const auto wanted = saved_.find(mask.name);
    known_[mask.name] = wanted == saved_.end() ? mask.cpus : wanted->second;
    if (wanted == saved_.end() || wanted->second == mask.cpus) continue;
    const auto done = threads_.write(mask, wanted->second);
    if (!done && done.error().code != base::ErrorCode::kGone) refused.insert(*wanted);
  }
  saved_ = std::move(refused);
}

}  // namespace ka::helper
