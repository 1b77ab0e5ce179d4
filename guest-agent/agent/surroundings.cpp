#include "guest-agent/agent/surroundings.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <string_view>

#include "guest-agent/agent/cpuset.hpp"
#include "guest-agent/agent/files.hpp"

namespace ka::agent {
namespace {

using policy::GuestCpuSet;

constexpr const char* kService = "kata-agent";
/// For services that have no cgroup of their own (kata-agent as the guest's first program).
constexpr const char* kServiceCgroup = "kata-affinity";

// include/linux/sched.h: a kernel thread, and one whose CPUs the kernel does not let anyone change.
constexpr unsigned long kKernelThread = 0x00200000;
constexpr unsigned long kBound = 0x04000000;

/// Field 9 of /proc/<pid>/stat, behind the name's last parenthesis; 0 where it cannot be read.
unsigned long flags_of(const std::filesystem::path& process) {
  const auto stat = read_text(process / "stat").value_or("");
  std::size_t at = stat.rfind(')');
  for (int field = 3; field <= 9 && at != std::string::npos; ++field) at = stat.find(' ', at + 1);
  if (at == std::string::npos) return 0;
  const auto flags =
      parse_number(std::string_view(stat).substr(at + 1, stat.find(' ', at + 1) - at - 1));
  return static_cast<unsigned long>(flags.value_or(0));
}

/// The path behind "<controller>:" (v1) or "0::" (v2) of /proc/<pid>/cgroup.
std::string cgroup_of(const std::filesystem::path& process, CgroupKind kind) {
  std::string text = read_text(process / "cgroup").value_or("") + '\n';
  const std::string key = kind == CgroupKind::kV2 ? "0::" : "cpuset:";
  const std::size_t at = text.find(key);
  if (at == std::string::npos) return "/";
  const std::size_t begin = at + key.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace

void Surroundings::place(const Hierarchy& hierarchy, const GuestCpuSet& common,
                         const GuestCpuSet& online, bool interrupts, policy::GuestReport& report) {
  const bool apart = common != online;
  if (!apart && !apart_) return;
  apart_ = apart;
  if (interrupts || interrupts_placed_) {
    place_interrupts(interrupts ? common : online, report);
    interrupts_placed_ = interrupts && apart;
  }
  place_kernel_threads(common, report);
  report.services_moved = place_services(hierarchy, common);
  last_common_ = common;
}

void Surroundings::place_interrupts(const GuestCpuSet& cpus, policy::GuestReport& report) {
  const auto irqs = roots_.proc / "irq";
  write_text(irqs / "default_smp_affinity", policy::format_mask(cpus));
  for (const int irq : list_numbers(irqs)) {
    const auto file = irqs / std::to_string(irq) / "smp_affinity_list";
    const auto text = read_text(file);
    const auto now = policy::parse_list<policy::GuestCpuTag>(text.value_or(""));
    if (!text || !now) continue;
    const bool moved = *now == cpus || write_text(file, policy::format_list(cpus)) == 0;
    ++(moved ? report.interrupts_moved : report.interrupts_stuck);
  }
}

/// The kernel's workers that are bound to no CPU follow a mask of their own; new kernel threads are
/// born of kthreadd (2), which is moved like all others.
void Surroundings::place_kernel_threads(const GuestCpuSet& cpus, policy::GuestReport& report) {
  write_text(roots_.sys / "devices/virtual/workqueue/cpumask", policy::format_mask(cpus));
  for (const int pid : list_numbers(roots_.proc)) {
    const unsigned long flags = flags_of(roots_.proc / std::to_string(pid));
    if ((flags & kKernelThread) == 0 || (flags & kBound) != 0) continue;
    const auto now = calls_.affinity(pid);
    if (!now) continue;
    const bool keep = now->subset_of(cpus) && *now != last_common_;
    const bool moved = keep || calls_.set_affinity(pid, cpus) == 0;
    ++(moved ? report.kernel_threads_moved : report.kernel_threads_stuck);
  }
}

bool Surroundings::place_services(const Hierarchy& hierarchy, const GuestCpuSet& cpus) {
  if (hierarchy.kind != CgroupKind::kV1 && hierarchy.kind != CgroupKind::kV2) return false;
  bool all = true;
  for (const int pid : list_numbers(roots_.proc)) {
    const auto process = roots_.proc / std::to_string(pid);
    if (read_text(process / "comm") == kService) all &= place_service(hierarchy, pid, cpus);
  }
  return all;
}

/// By its cgroup: an affinity of its own would be inherited by every container that it starts.
bool Surroundings::place_service(const Hierarchy& hierarchy, int pid, const GuestCpuSet& cpus) {
  const std::string path = cgroup_of(roots_.proc / std::to_string(pid), hierarchy.kind);
  if (path != "/") {
    return set_cpuset(hierarchy, hierarchy.root / path.substr(1), cpus) == 0;
  }
  const auto directory = hierarchy.root / kServiceCgroup;
  if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) return false;
  return set_cpuset(hierarchy, directory, cpus) == 0 &&
         write_text(directory / "cgroup.procs", std::to_string(pid)) == 0;
}

}  // namespace ka::agent
