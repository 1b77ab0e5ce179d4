// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/queues.hpp"

#include "affinity/helper/mask_files.hpp"
#include "base/files.hpp"
#include "base/text.hpp"

namespace ka::helper {

/// `name`: "eth0/queues/rx-0".
std::filesystem::path Queues::file_of(const std::string& name) const {
  return directory_ / name / (direction_ == Direction::kReceive ? "rps_cpus" : "xps_cpus");
}

/// Devices come and go; one of a single transmit queue has no XPS (ENOENT).
void Queues::read_device(const std::string& device, std::vector<HostMask>& masks) const {
  const auto queues = base::list_directory(directory_ / device / "queues");
  if (!queues) return;
  const std::string_view prefix = direction_ == Direction::kReceive ? "rx-" : "tx-";
  for (const std::string& queue : *queues) {
    if (!queue.starts_with(prefix)) continue;
    std::string name = device + "/queues/" + queue;
    auto cpus = read_cpus(file_of(name), SetFormat::kMask);
    if (!cpus || cpus->empty()) continue;
    masks.push_back(
        {std::move(name), base::printable(device + ' ' + queue, kMostTitle), *std::move(cpus), {}});
  }
}

base::Result<std::vector<HostMask>> Queues::read() const {
  const auto devices = base::list_directory(directory_);
  if (!devices) return unexpected(devices.error());
  std::vector<HostMask> masks;
  for (const std::string& device : *devices) read_device(device, masks);
  return masks;
}

base::Result<void> Queues::write(const HostMask& mask, const policy::CpuSet& cpus) const {
  return write_cpus(file_of(mask.name), SetFormat::kMask, cpus);
}

}  // namespace ka::helper
