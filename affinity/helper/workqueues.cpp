// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/workqueues.hpp"

#include "affinity/helper/mask_files.hpp"

namespace ka::helper {

/// Not every kernel has it.
base::Result<std::vector<HostMask>> Workqueues::read() const {
  auto cpus = read_cpus(file_, SetFormat::kMask);
  if (is_gone(cpus)) return std::vector<HostMask>{};
  if (!cpus) return unexpected(cpus.error());
  return std::vector<HostMask>{{"unbound", "unbound workqueues", *std::move(cpus), {}}};
}

base::Result<void> Workqueues::write(const HostMask& /*mask*/, const policy::CpuSet& cpus) const {
  return write_cpus(file_, SetFormat::kMask, cpus);
}

}  // namespace ka::helper
