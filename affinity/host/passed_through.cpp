// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/passed_through.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "base/files.hpp"
#include "base/text.hpp"

namespace ka::host {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Result;
using base::Trouble;
using policy::CpuSet;
using policy::InterruptFacts;

Result<bool> has_entries(const fs::path& directory) {
  const auto names = base::list_directory(directory);
  if (is_gone(names)) return false;
  if (!names) return unexpected(names.error());
  return !names->empty();
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Ids of the devices of one descriptor; not all of a group's are VFIO's, nor of PCI.
std::vector<std::string> devices_of(const fs::path& sys, std::string_view file, Trouble& trouble) {
  constexpr std::string_view kDevice = "/dev/vfio/devices/", kGroup = "/dev/vfio/";
  if (file.starts_with(kDevice)) {
    const fs::path name = file.substr(kDevice.size());
    const auto link = base::read_link(sys / "class/vfio-dev" / name.filename() / "device");
    trouble.record(link);
    return link ? std::vector{fs::path(*link).filename().string()} : std::vector<std::string>{};
  }
  if (!file.starts_with(kGroup) || !is_number(file.substr(kGroup.size()))) return {};
  const auto ids =
      base::list_directory(sys / "kernel/iommu_groups" / file.substr(kGroup.size()) / "devices");
  trouble.record(ids);
  return ids ? *ids : std::vector<std::string>{};
}

fs::path pci(const fs::path& sys, const std::string& device) {
  return sys / "bus/pci/devices" / device;
}

/// Beside vfio-pci there are drivers for certain devices, which are all called like it
/// (mlx5_vfio_pci). A bridge of the same group has another.
bool is_driven_by_vfio(const fs::path& sys, const std::string& device, Trouble& trouble) {
  const auto driver = base::read_link(pci(sys, device) / "driver");
  trouble.record(driver);
  return driver && fs::path(*driver).filename().native().find("vfio") != std::string::npos;
}

int read_number(const fs::path& file, int otherwise, Trouble& trouble) {
  const auto text = base::read_file(file, 64);
  trouble.record(text);
  if (!text) return otherwise;
  const auto number = base::parse_number(*text);
  trouble.record(number);
  return number && *number >= 0 && *number <= 0x7fffffff ? static_cast<int>(*number) : otherwise;
}

/// Numbers of the interrupts that a device has or may have. "irq" is its INTx's or, under MSI,
/// sometimes the first of the others (irq_show() in drivers/pci/pci-sysfs.c).
std::set<int> numbers_of(const fs::path& sys, const std::string& device, Trouble& trouble) {
  std::set<int> numbers;
  const auto listed = base::list_numbers(pci(sys, device) / "msi_irqs");
  trouble.record(listed);
  if (listed) numbers.insert(listed->begin(), listed->end());
  numbers.insert(read_number(pci(sys, device) / "irq", 0, trouble));
  numbers.erase(numbers.begin(), numbers.upper_bound(0));
  return numbers;
}

Result<Handlers> read_handlers(const fs::path& sys, int number, std::string_view device) {
  const auto text = base::read_file(sys / "kernel/irq" / std::to_string(number) / "actions");
  if (!text) return unexpected(text.error());
  return parse_handlers(*text, device);
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

/// kGone: VFIO does not handle it for this device.
Result<InterruptFacts> read_interrupt(const fs::path& proc, const fs::path& sys, int number,
                                      const std::string& device) {
  auto handlers = read_handlers(sys, number, device);
  if (!handlers) return unexpected(std::move(handlers.error()));
  if (handlers->own.empty()) return base::fail(ErrorCode::kGone, "no handler of VFIO's");
  auto cpus = read_affinity(proc, number);
  if (!cpus) return unexpected(std::move(cpus.error()));
  return InterruptFacts{number, device, std::move(handlers->own), std::move(handlers->others),
                        std::move(*cpus)};
}

/// kGone: the number has another handler, or none. kTransient: that cannot be read now.
Result<void> check_still(const fs::path& sys, const InterruptFacts& interrupt) {
  const auto now = read_handlers(sys, interrupt.number, interrupt.device);
  if (!now && !is_gone(now)) return base::fail(ErrorCode::kTransient, now.error().message);
  if (now && now->own == interrupt.name) return {};
  return base::fail(ErrorCode::kGone, interrupt.name + ": its number has changed");
}

std::set<std::string> device_ids(const fs::path& proc, const fs::path& sys, int vmm,
                                 Trouble& trouble) {
  std::set<std::string> ids;
  for (const std::string& file : device_files(proc / std::to_string(vmm), trouble)) {
    for (const std::string& id : devices_of(sys, file, trouble)) {
      if (is_driven_by_vfio(sys, id, trouble)) ids.insert(id);
    }
  }
  return ids;
}

}  // namespace

/// Every VFIO group is in the first class, every device that has one in the second.
Result<bool> has_vfio(const fs::path& sys) {
  auto has_groups = has_entries(sys / "class/vfio");
  if (has_groups && *has_groups) return has_groups;
  auto has_devices = has_entries(sys / "class/vfio-dev");
  return !has_devices || *has_devices ? has_devices : has_groups;
}

std::vector<std::string> device_files(const fs::path& process, Trouble& trouble) {
  constexpr std::array<std::string_view, 5> kDevices{"/dev/vfio/", "anon_inode:[vfio-device]",
                                                     "anon_inode:kvm-vfio", "/dev/iommu",
                                                     "/dev/vhost-vdpa"};
  std::vector<std::string> found;
  const auto numbers = base::list_numbers(process / "fd");
  trouble.record(numbers);
  if (!numbers) return found;
  for (const int fd : *numbers) {
    auto target = base::read_link(process / "fd" / std::to_string(fd));
    trouble.record(target);
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

policy::PassedThrough find_passed_through(const fs::path& proc, const fs::path& sys, int vmm,
                                          Trouble& trouble) {
  policy::PassedThrough found;
  const auto is_possible = has_vfio(sys);
  trouble.record(is_possible);
  if (!is_possible || !*is_possible) return found;
  for (const std::string& id : device_ids(proc, sys, vmm, trouble)) {
    found.devices.push_back({id, read_number(pci(sys, id) / "numa_node", -1, trouble)});
    for (const int number : numbers_of(sys, id, trouble)) {
      auto interrupt = read_interrupt(proc, sys, number, id);
      trouble.record(interrupt);
      if (interrupt) found.interrupts.push_back(std::move(*interrupt));
    }
  }
  std::ranges::sort(found.interrupts, {}, &InterruptFacts::number);
  return found;
}

/// The kernel has accepted what cannot be read back: the next observation shows what it made of it.
Result<CpuSet> send_interrupt(const fs::path& proc, const fs::path& sys,
                              const InterruptFacts& interrupt, const CpuSet& cpus) {
  if (const auto still = check_still(sys, interrupt); !still) return unexpected(still.error());
  const auto done = base::write_kernel_file(affinity_file(proc, interrupt.number),
                                            policy::format_list(cpus) + '\n');
  if (!done) return unexpected(done.error());
  auto actual = read_affinity(proc, interrupt.number);
  const auto still = check_still(sys, interrupt);
  if (is_gone(still)) return unexpected(still.error());
  return actual || is_gone(actual) ? std::move(actual) : cpus;
}

}  // namespace ka::host
