// SPDX-License-Identifier: Apache-2.0
#include "vmm/procfs/kvm_fds.hpp"

#include <charconv>

#include "base/files.hpp"
#include "vmm/procfs/words.hpp"

namespace ka::vmm {
namespace {

// _IO(KVMIO, 0x80), include/uapi/linux/kvm.h
constexpr unsigned long long kKvmRun = 0xae80;

template <typename Number>
std::optional<Number> read_number(std::string_view text, int base) {
  Number value{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<unsigned long long> read_hex(std::string_view text) {
  if (!text.starts_with("0x")) return std::nullopt;
  return read_number<unsigned long long>(text.substr(2), 16);
}

}  // namespace

void add_fd(OpenFds& fds, int number, std::string_view link_target) {
  constexpr std::string_view kVcpu = "anon_inode:kvm-vcpu:";
  if (link_target == "anon_inode:kvm-vm") ++fds.kvm_vms;
  if (link_target == "/dev/vhost-net" || link_target == "/dev/vhost-vsock" ||
      link_target == "/dev/vhost-scsi") {
    ++fds.vhost_devices;
  }
  if (link_target.starts_with("socket:[")) fds.sockets.push_back(number);
  if (!link_target.starts_with(kVcpu)) return;
  const auto id = read_number<int>(link_target.substr(kVcpu.size()), 10);
  if (id && *id >= 0) fds.kvm_vcpus.emplace(number, *id);
}

base::Result<OpenFds> read_fds(const std::filesystem::path& proc, int pid) {
  const std::string path = proc.native() + '/' + std::to_string(pid) + "/fd";
  const auto numbers = base::list_numbers(path);
  if (!numbers) return unexpected(numbers.error());
  OpenFds fds;
  for (const int number : *numbers) {
    const auto target = base::read_link(path + '/' + std::to_string(number));
    if (!target && !is_gone(target)) {
      return unexpected(target.error());
    }
    if (target) add_fd(fds, number, *target);
  }
  return fds;
}

std::optional<int> kvm_run_fd(std::string_view syscall_line) {
  const auto number = read_number<int>(next_word(syscall_line), 10);
  if (!number || *number < 0) return std::nullopt;
  const auto fd = read_hex(next_word(syscall_line));
  const auto request = read_hex(next_word(syscall_line));
  // The call's number differs between architectures; a vCPU's descriptor with this request does
  // not.
  if (!fd || !request || *request != kKvmRun || *fd > 0x7fffffff) return std::nullopt;
  return static_cast<int>(*fd);
}

}  // namespace ka::vmm
