// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/host/boot.hpp"

#include <filesystem>
#include <optional>
#include <string_view>

#include "guest-agent/host/kernel_image.hpp"
#include "policy/facts/consume_number.hpp"

namespace ka::guest {
namespace {

/// A number of a list of options by its name: "4,maxcpus=8", "cpus=4,...", "boot=4,max=8".
/// `is_first`: the list may begin with it, without a name.
std::optional<int> option(std::string_view list, std::string_view key, bool is_first) {
  for (bool first = is_first; !list.empty(); first = false) {
    std::string_view part = list.substr(0, list.find(','));
    list.remove_prefix(std::min(part.size() + 1, list.size()));
    if (part.starts_with(key)) {
      part.remove_prefix(key.size());
    } else if (!first) {
      continue;
    }
    const auto number = policy::consume_number(part);
    if (number && part.empty()) return number;
  }
  return std::nullopt;
}

void read_smp(policy::plan::BootFacts& boot, std::string_view list) {
  boot.cold_vcpus = option(list, "cpus=", true);
  boot.max_vcpus = option(list, "maxcpus=", false);
  // Sockets, cores and threads give the maximum, too.
  if (list.find(',') == std::string_view::npos) boot.max_vcpus = boot.cold_vcpus;
}

void read_cpus(policy::plan::BootFacts& boot, std::string_view list) {
  boot.cold_vcpus = option(list, "boot=", true);
  boot.max_vcpus = option(list, "max=", false);
  if (!boot.max_vcpus) boot.max_vcpus = boot.cold_vcpus;
}

/// Of "vmlinux-6.12.36-157" or "vmlinuz-6.12.36", as Kata installs them.
policy::plan::Numbering numbering_of_name(std::string_view name) {
  const bool has_release = name.starts_with("vmlinux-") || name.starts_with("vmlinuz-");
  return has_release ? policy::plan::numbering_of(name.substr(8))
                     : policy::plan::Numbering::kUnknown;
}

/// An image is only read where its name does not spare it.
policy::plan::Numbering numbering_of_kernel(const std::string& kernel) {
  if (kernel.empty()) return policy::plan::Numbering::kUnknown;
  std::error_code none;
  const auto real = std::filesystem::weakly_canonical(kernel, none);
  const auto by_name = numbering_of_name(real.filename().native());
  if (by_name == policy::plan::Numbering::kByApicId) return by_name;
  const std::string release = kernel_release(real);
  return release.empty() ? by_name : policy::plan::numbering_of(release);
}

/// Kata keeps what belongs to one VM below /run.
bool is_shared(std::string_view file) { return !file.empty() && !file.starts_with("/run/"); }

/// The file of a drive, or of memory that is a file, which the guest cannot write.
std::string_view read_only_file(std::string_view list) {
  std::string_view file;
  bool is_read_only = false;
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(','));
    list.remove_prefix(std::min(part.size() + 1, list.size()));
    const auto equals = std::min(part.find('='), part.size());
    const std::string_view key = part.substr(0, equals);
    if (key == "file" || key == "path" || key == "mem-path") file = part.substr(equals);
    is_read_only |= part == "readonly=on" || part == "discard_writes=on";
  }
  return is_read_only && !file.empty() ? file.substr(1) : std::string_view();
}

/// Empty: the option names no image.
std::string_view image_of(std::string_view option, std::string_view value) {
  if (option == "-initrd" || option == "--initramfs") return value;
  const bool may_be =
      option == "-object" || option == "-drive" || option == "--disk" || option == "--pmem";
  return may_be ? read_only_file(value) : std::string_view();
}

}  // namespace

policy::plan::BootFacts boot_facts(const std::vector<std::string>& command_line) {
  policy::plan::BootFacts boot;
  if (command_line.empty()) return boot;
  boot.plugs_none = std::filesystem::path(command_line.front()).filename() == "firecracker";
  for (std::size_t i = 0; i + 1 < command_line.size(); ++i) {
    const std::string& name = command_line[i];
    const std::string& value = command_line[i + 1];
    if (name == "-smp") read_smp(boot, value);
    if (name == "--cpus") read_cpus(boot, value);
  }
  boot.numbering = numbering_of_kernel(kernel_of(command_line));
  return boot;
}

std::string image_of(const std::vector<std::string>& command_line) {
  std::string images;
  for (std::size_t i = 0; i + 1 < command_line.size(); ++i) {
    const std::string_view image = image_of(command_line[i], command_line[i + 1]);
    if (is_shared(image)) images.append(images.empty() ? "" : ",").append(image);
  }
  return images;
}

std::string kernel_of(const std::vector<std::string>& command_line) {
  for (std::size_t i = 0; i + 1 < command_line.size(); ++i) {
    if (command_line[i] == "-kernel" || command_line[i] == "--kernel") return command_line[i + 1];
  }
  return {};
}

}  // namespace ka::guest
