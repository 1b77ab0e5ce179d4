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

}  // namespace

std::optional<NameMeaning> read_thread_name(std::string_view comm) {
  for (const Pattern& pattern : kPatterns) {
    if (auto meaning = match(pattern, comm)) return meaning;
  }
  constexpr std::string_view kIothread = "IO ";
  if (!comm.starts_with(kIothread) || comm.size() == kIothread.size()) return std::nullopt;
  const std::string_view id = comm.substr(kIothread.size());
  if (id == "mon_iothread") return std::nullopt;
  return NameMeaning{.role = Role::kIothread, .number = -1, .iothread = std::string(id)};
}

}  // namespace ka::vmm
