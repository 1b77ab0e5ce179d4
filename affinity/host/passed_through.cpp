// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/passed_through.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>

#include "base/files.hpp"
#include "base/text.hpp"

namespace ka::host {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Result;
using policy::CpuSet;
using policy::InterruptFacts;

bool has_entries(const fs::path& directory) {
  const auto names = base::list_directory(directory);
  return names && !names->empty();
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Ids of the devices of one descriptor; not all of a group's are VFIO's, nor of PCI.
std::vector<std::string> devices_of(const fs::path& sys, std::string_view file) {
  constexpr std::string_view kDevice = "/dev/vfio/devices/", kGroup = "/dev/vfio/";
  if (file.starts_with(kDevice)) {
    const fs::path name = file.substr(kDevice.size());
    const auto link = base::read_link(sys / "class/vfio-dev" / name.filename() / "device");
    return link ? std::vector{fs::path(*link).filename().string()} : std::vector<std::string>{};
  }
  if (!file.starts_with(kGroup) || !is_number(file.substr(kGroup.size()))) return {};
  const auto ids =
      base::list_directory(sys / "kernel/iommu_groups" / file.substr(kGroup.size()) / "devices");
  return ids ? *ids : std::vector<std::string>{};
}

fs::path pci(const fs::path& sys, const std::string& device) {
  return sys / "bus/pci/devices" / device;
}

/// Beside vfio-pci there are drivers for certain devices, which are all called like it
/// (mlx5_vfio_pci). A bridge of the same group has another.
bool is_driven_by_vfio(const fs::path& sys, const std::string& device) {
  const auto driver = base::read_link(pci(sys, device) / "driver");
  return driver && fs::path(*driver).filename().native().find("vfio") != std::string::npos;
}

int read_number(const fs::path& file, int otherwise) {
  const auto text = base::read_file(file, 64);
  const auto number = text ? base::parse_number(*text) : otherwise;
  return number && *number >= 0 && *number <= 0x7fffffff ? static_cast<int>(*number) : otherwise;
}

/// Numbers of the interrupts that a device has or may have. "irq" is its INTx's or, under MSI,
/// sometimes the first of the others (irq_show() in drivers/pci/pci-sysfs.c).
std::set<int> numbers_of(const fs::path& sys, const std::string& device) {
  std::set<int> numbers;
  if (const auto listed = base::list_numbers(pci(sys, device) / "msi_irqs")) {
    numbers.insert(listed->begin(), listed->end());
  }
  numbers.insert(read_number(pci(sys, device) / "irq", 0));
  numbers.erase(numbers.begin(), numbers.upper_bound(0));
  return numbers;
}

Handlers read_handlers(const fs::path& sys, int number, std::string_view device) {
  const auto text = base::read_file(sys / "kernel/irq" / std::to_string(number) / "actions");
  return text ? parse_handlers(*text, device) : Handlers{};
}

fs::path affinity_file(const fs::path& proc, int number) {
  return proc / "irq" / std::to_string(number) / "smp_affinity_list";
}

Result<CpuSet> read_affinity(const fs::path& proc, int number) {
  const auto text = base::read_file(affinity_file(proc, number));
  if (!text) return unexpected(text.error());
  auto cpus = policy::parse_list<policy::CpuTag>(*text);
  if (!cpus) return base::fail(ErrorCode::kInvalid, "cannot read an interrupt's affinity");
  return std::move(*cpus);
}

std::optional<InterruptFacts> read_interrupt(const fs::path& proc, const fs::path& sys, int number,
                                             const std::string& device) {
  Handlers handlers = read_handlers(sys, number, device);
  if (handlers.own.empty()) return std::nullopt;
  auto cpus = read_affinity(proc, number);
  if (!cpus) return std::nullopt;
  return InterruptFacts{number, device, std::move(handlers.own), std::move(handlers.others),
                        std::move(*cpus)};
}

bool is_still(const fs::path& sys, const InterruptFacts& interrupt) {
  return read_handlers(sys, interrupt.number, interrupt.device).own == interrupt.name;
}

}  // namespace

/// Every VFIO group is in the first class, every device that has one in the second.
bool has_vfio(const fs::path& sys) {
  return has_entries(sys / "class/vfio") || has_entries(sys / "class/vfio-dev");
}

std::vector<std::string> device_files(const fs::path& process) {
  constexpr std::array<std::string_view, 5> kDevices{"/dev/vfio/", "anon_inode:[vfio-device]",
                                                     "anon_inode:kvm-vfio", "/dev/iommu",
                                                     "/dev/vhost-vdpa"};
  std::vector<std::string> found;
  const auto numbers = base::list_numbers(process / "fd");
  if (!numbers) return found;
  for (const int fd : *numbers) {
    auto target = base::read_link(process / "fd" / std::to_string(fd));
    const bool is_one = target && std::ranges::any_of(kDevices, [&](auto prefix) {
                          return target->starts_with(prefix) && *target != "/dev/vfio/vfio";
                        });
    if (is_one) found.push_back(std::move(*target));
  }
  return found;
}

Handlers parse_handlers(std::string_view actions, std::string_view device) {
  if (actions.ends_with('\n')) actions.remove_suffix(1);
  const std::string of_device = '(' + std::string(device) + ')';
  Handlers handlers;
  while (!actions.empty()) {
    const std::string_view name = actions.substr(0, actions.find(','));
    actions.remove_prefix(std::min(name.size() + 1, actions.size()));
    if (handlers.own.empty() && name.starts_with("vfio-") && name.ends_with(of_device)) {
      handlers.own = base::printable(name);
    } else {
      handlers.others += handlers.others.empty() ? "" : ",";
      handlers.others += base::printable(name);
    }
  }
  return handlers;
}

policy::PassedThrough find_passed_through(const fs::path& proc, const fs::path& sys, int vmm) {
  policy::PassedThrough found;
  if (!has_vfio(sys)) return found;
  std::set<std::string> ids;
  for (const std::string& file : device_files(proc / std::to_string(vmm))) {
    for (const std::string& id : devices_of(sys, file)) {
      if (is_driven_by_vfio(sys, id)) ids.insert(id);
    }
  }
  for (const std::string& id : ids) {
    found.devices.push_back({id, read_number(pci(sys, id) / "numa_node", -1)});
    for (const int number : numbers_of(sys, id)) {
      auto interrupt = read_interrupt(proc, sys, number, id);
      if (interrupt) found.interrupts.push_back(std::move(*interrupt));
    }
  }
  std::ranges::sort(found.interrupts, {}, &InterruptFacts::number);
  return found;
}

Result<CpuSet> send_interrupt(const fs::path& proc, const fs::path& sys,
                              const InterruptFacts& interrupt, const CpuSet& cpus) {
  const auto gone = base::fail(ErrorCode::kGone, interrupt.name + ": its number has changed");
  if (!is_still(sys, interrupt)) return gone;
  const auto done = base::write_kernel_file(affinity_file(proc, interrupt.number),
                                            policy::format_list(cpus) + '\n');
  if (!done) return unexpected(done.error());
  auto actual = read_affinity(proc, interrupt.number);
  if (actual && !is_still(sys, interrupt)) return gone;
  return actual;
}

}  // namespace ka::host
