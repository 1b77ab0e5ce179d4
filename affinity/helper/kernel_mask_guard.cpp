// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/kernel_mask_guard.hpp"

#include <algorithm>
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
/// That the list of processes is gone says nothing of a partition: it is read again later.
base::Result<void> KernelMaskGuard::add(const base::Result<std::vector<HostMask>>& masks) {
  if (!masks) return base::fail(base::ErrorCode::kTransient, masks.error().message);
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
  known_ = *std::move(now);
  saved_ = give_back();
}

/// What is still to be given back. A thread whose mask has CPUs that are isolated now gets the rest
/// of it, and the kernel calls that success (__sched_setaffinity() in kernel/sched/syscalls.c): so
/// masks are read again.
KernelMaskGuard::Saved KernelMaskGuard::give_back() {
  Saved left;
  std::vector<HostMask> written;
  for (HostMask& mask : known_) {
    const auto wanted = saved_.find(mask.name);
    if (wanted == saved_.end() || wanted->second == mask.cpus) continue;
    if (mask.fixed == kBoundByKernel) continue;
    const auto done = threads_.write(mask, wanted->second);
    if (is_gone(done)) continue;
    left.insert(*wanted);
    if (!done) continue;
    mask.cpus = wanted->second;
    written.push_back(mask);
  }
  if (written.empty()) return left;
  const auto now = threads_.read_again(written);
  if (!now) return left;
  std::erase_if(left, [&](const Saved::value_type& one) {
    return std::ranges::any_of(*now, [&](const HostMask& mask) {
      return mask.name == one.first && mask.cpus == one.second;
    });
  });
  return left;
}

}  // namespace ka::helper
