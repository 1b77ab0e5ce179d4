// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/guarded_threads.hpp"

#include <cerrno>
#include <utility>

namespace ka::helper {

base::Result<std::vector<HostMask>> GuardedThreads::read() const {
  if (!std::exchange(is_saved_, true)) overwritten_.save();
  auto found = threads_->read();
  if (!found) return found;
  for (HostMask& mask : *found) {
    if (auto before = overwritten_.find(mask.name)) mask.cpus = *std::move(before);
  }
  return found;
}

/// What the kernel refuses for good is `fixed`. EINVAL else: all of these CPUs are isolated
/// (__set_cpus_allowed_ptr_locked() in kernel/sched/core.c).
base::Result<void> GuardedThreads::write(const HostMask& mask, const policy::CpuSet& cpus) const {
  auto done = threads_->write(mask, cpus);
  if (done) {
    overwritten_.forget(mask.name);
    is_saved_ = false;
  }
  if (done || done.error().number != EINVAL) return done;
  return base::fail(base::ErrorCode::kTransient, "its CPUs are isolated: " + done.error().message);
}

}  // namespace ka::helper
