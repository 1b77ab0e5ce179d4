// SPDX-License-Identifier: Apache-2.0
// Kernel threads, all children of kthreadd. Most are bound to one CPU each by the kernel. Those of
// a VM ("vhost-<pid>" before Linux 6.4, KVM's) are the daemon's.
#pragma once

#include "affinity/helper/host_masks.hpp"
#include "affinity/helper/thread_writer.hpp"
#include "affinity/host/affinity_calls.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::helper {

class KernelThreads final : public HostMasks {
 public:
  /// `calls` must outlive it.
  KernelThreads(const Roots& roots, host::AffinityCalls& calls);

  std::string_view kind() const override { return "kernel-thread"; }
  base::Result<std::vector<HostMask>> read() const override;
  /// A system call for each, instead of files of every process: a VMM's end cannot wait for them.
  base::Result<std::vector<HostMask>> read_again(const std::vector<HostMask>& known) const override;
  base::Result<void> write(const HostMask& mask, const policy::CpuSet& cpus) const override;

 private:
  base::Result<void> check(const policy::ThreadKey& thread) const;

  Roots roots_;
  host::AffinityCalls& calls_;
  mutable ThreadWriter<policy::CpuSet> writer_;
};

}  // namespace ka::helper
