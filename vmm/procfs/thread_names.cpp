// SPDX-License-Identifier: Apache-2.0
#include "vmm/procfs/thread_names.hpp"

#include <array>
#include <charconv>

namespace ka::vmm {
namespace {

using policy::Role;

struct Pattern {
  std::string_view prefix;
  std::string_view suffix;
  Role role;
  int limit;  ///< numbers are below it
};

// Thread ids go up to PID_MAX_LIMIT (include/linux/threads.h).
constexpr int kPidMax = 4 * 1024 * 1024 + 1;

// QEMU: accel/kvm/kvm-accel-ops.c, accel/tcg/tcg-accel-ops-mttcg.c; Cloud Hypervisor:
// vmm/src/cpu.rs; Firecracker: vmm/src/vstate/vcpu.rs; Dragonball: src/vcpu/vcpu_impl.rs; OpenVMM
// as Kata runs it: openvmm/inner_hypervisor.rs; the kernel: drivers/vhost/vhost.c.
constexpr std::array kPatterns = {
    Pattern{"CPU ", "/KVM", Role::kVcpu, policy::kMaxIds},
    Pattern{"CPU ", "/TCG", Role::kVcpu, policy::kMaxIds},
    Pattern{"vcpu", "", Role::kVcpu, policy::kMaxIds},
    Pattern{"fc_vcpu ", "", Role::kVcpu, policy::kMaxIds},
    Pattern{"db_vcpu", "", Role::kVcpu, policy::kMaxIds},
    Pattern{"vp-", "", Role::kVcpu, policy::kMaxIds},
    Pattern{"vhost-", "", Role::kVhost, kPidMax},
};

/// A decimal without sign or leading zeros, below `limit`; -1 for anything else.
int read_number(std::string_view text, int limit) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return -1;
  if (text.size() > 1 && text[0] == '0') return -1;
  int value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && stop == text.data() + text.size();
  return whole && value < limit ? value : -1;
}

std::optional<NameMeaning> match(const Pattern& pattern, std::string_view comm) {
  if (comm.size() <= pattern.prefix.size() + pattern.suffix.size()) return std::nullopt;
  if (!comm.starts_with(pattern.prefix) || !comm.ends_with(pattern.suffix)) return std::nullopt;
  comm.remove_prefix(pattern.prefix.size());
  comm.remove_suffix(pattern.suffix.size());
  const int number = read_number(comm, pattern.limit);
  if (number < 0) return std::nullopt;
  return NameMeaning{.role = pattern.role, .number = number, .iothread = {}};
}

/// Threads that serve the queues of a device: a prefix, a number, and where there is a second part
/// that and another number.
struct Queue {
  std::string_view prefix;
  std::string_view second;
};

// Cloud Hypervisor: virtio-devices/src/net.rs, block.rs, vmm/src/device_manager.rs, and the ids
// that Kata's clh.go gives to disks that it plugs; Dragonball: the block device's threads.
constexpr std::array kQueues = {
    Queue{"_net", "_qp"},      Queue{"_disk", "_q"},        Queue{"_fs", ""},
    Queue{"clh_drive_", "_q"}, Queue{"blk_iothread_q", ""},
};

bool is_number(std::string_view text) { return read_number(text, policy::kMaxIds) >= 0; }

bool matches(const Queue& queue, std::string_view comm) {
  if (!comm.starts_with(queue.prefix)) return false;
  comm.remove_prefix(queue.prefix.size());
  if (queue.second.empty()) return is_number(comm);
  const std::size_t at = comm.find(queue.second);
  return at != std::string_view::npos && is_number(comm.substr(0, at)) &&
         is_number(comm.substr(at + queue.second.size()));
}

NameMeaning iothread(std::string_view id) {
  return {.role = Role::kIothread, .number = -1, .iothread = std::string(id)};
}

}  // namespace

bool is_made_by_kernel(std::string_view comm) {
  return comm.starts_with("vhost-") || comm.starts_with("kvm-nx-lpage-");
}

bool belongs_to_vm(std::string_view comm) {
  return comm == "vmm_master" || is_made_by_kernel(comm);
}

std::optional<NameMeaning> read_thread_name(std::string_view comm) {
  for (const Pattern& pattern : kPatterns) {
    if (auto meaning = match(pattern, comm)) return meaning;
  }
  for (const Queue& queue : kQueues) {
    if (!matches(queue, comm)) continue;
    return iothread(comm.starts_with('_') ? comm.substr(1) : comm);
  }
  constexpr std::string_view kIothread = "IO ";
  if (!comm.starts_with(kIothread) || comm.size() == kIothread.size()) return std::nullopt;
  const std::string_view id = comm.substr(kIothread.size());
  if (id == "mon_iothread") return std::nullopt;
  return iothread(id);
}

}  // namespace ka::vmm
