// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/system_tasks.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>

#include "guest-agent/agent/cpuset.hpp"
#include "guest-agent/agent/files.hpp"

namespace ka::agent {
namespace {

using policy::GuestCpuSet;

constexpr int kTasksAtOnce = 8;
constexpr const char* kService = "kata-agent";
/// What systemd runs beside containers (systemd.special(7)).
constexpr const char* kSlices[] = {"init.scope", "system.slice", "user.slice"};
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

/// Any program may call itself kata-agent: one that is in a container is that container's.
bool is_in_container(const std::filesystem::path& cgroup) {
  return std::ranges::any_of(
      cgroup, [](const std::filesystem::path& part) { return is_container_name(part.native()); });
}

/// A slice cannot have fewer CPUs than a container in it.
bool holds_container(const Tree& tree, const std::filesystem::path& slice) {
  const auto is_below = [&slice](const std::filesystem::path& cgroup) {
    return std::ranges::mismatch(slice, cgroup).in1 == slice.end();
  };
  return std::ranges::any_of(tree.strangers, is_below) ||
         std::ranges::any_of(tree.containers,
                             [&](const auto& one) { return is_below(one.second); });
}

bool is_there(const Tree& tree, const std::filesystem::path& cgroup) {
  return std::ranges::find(tree.branches, cgroup) != tree.branches.end();
}

}  // namespace

void SystemTasks::begin(const Hierarchy& hierarchy, const Tree& tree, const GuestCpuSet& common,
                        const GuestCpuSet& online, bool interrupts) {
  const bool apart = common != online;
  if (state_ == State::kUntouched && !adopt() && !apart) return;
  if (apart) keep_record(common);
  state_ = apart ? State::kApart : State::kRestored;
  done_ = {};
  hierarchy_ = hierarchy;
  if (std::ranges::find(earlier_, common_) == earlier_.end()) earlier_.push_back(common_);
  common_ = common;
  online_ = online;
  for (auto& [service, cpus] : services_) cpus = common;
  if (interrupts || interrupts_placed_) {
    place_interrupts(interrupts ? common : online);
    interrupts_placed_ |= apart;
  }
  // The kernel's workers that are bound to no CPU follow a mask of their own.
  write_text(roots_.sys / "devices/virtual/workqueue/cpumask", policy::format_mask(common));
  const bool has_cpusets = hierarchy.kind == CgroupKind::kV1 || hierarchy.kind == CgroupKind::kV2;
  done_.services_moved = has_cpusets && place_slices(tree);
  // From behind; kthreadd (2), of which new kernel threads are born, comes first.
  tasks_ = list_numbers(roots_.proc);
  std::ranges::sort(tasks_, std::greater());
}

void SystemTasks::place_some() {
  for (int i = 0; i < kTasksAtOnce && !tasks_.empty(); ++i) {
    place_task(tasks_.back());
    tasks_.pop_back();
  }
  if (!tasks_.empty()) return;
  earlier_.clear();
  std::error_code none;
  if (state_ == State::kRestored) std::filesystem::remove(record(), none);
}

/// From an agent that was killed. False: it kept nothing off any CPU.
bool SystemTasks::adopt() {
  const auto text = read_text(record());
  if (!text) return false;
  if (const auto cpus = policy::parse_list<policy::GuestCpuTag>(*text)) earlier_.push_back(*cpus);
  interrupts_placed_ = true;
  return true;
}

/// What cannot be recorded is placed nevertheless: it is lost only with the agent.
void SystemTasks::keep_record(const GuestCpuSet& common) const {
  const std::string text = policy::format_list(common);
  if (read_text(record()) != text) replace_file(record(), text, kRecordMode);
}

std::filesystem::path SystemTasks::record() const { return roots_.run / "kata-affinity/apart"; }

bool SystemTasks::hold_services(const Tree& tree) {
  if (state_ != State::kApart) return true;
  bool is_held = place_slices(tree);
  for (const auto& [service, cpus] : services_) {
    if (is_there(tree, service)) is_held &= set_cpuset(hierarchy_, service, cpus) == 0;
  }
  return is_held;
}

std::optional<GuestCpuSet> SystemTasks::given(const std::filesystem::path& cgroup) const {
  const auto found = services_.find(cgroup);
  return found == services_.end() ? std::nullopt : std::optional(found->second);
}

void SystemTasks::record(policy::GuestReport& report) const {
  report.interrupts_moved = done_.interrupts_moved;
  report.interrupts_stuck = done_.interrupts_stuck;
  report.kernel_threads_moved = done_.kernel_threads_moved;
  report.kernel_threads_stuck = done_.kernel_threads_stuck;
  report.services_moved = done_.services_moved;
}

void SystemTasks::place_interrupts(const GuestCpuSet& cpus) {
  const auto irqs = roots_.proc / "irq";
  write_text(irqs / "default_smp_affinity", policy::format_mask(cpus));
  for (const int irq : list_numbers(irqs)) {
    const auto file = irqs / std::to_string(irq) / "smp_affinity_list";
    const auto text = read_text(file);
    const auto now = policy::parse_list<policy::GuestCpuTag>(text.value_or(""));
    if (!text || !now) continue;
    const bool moved = *now == cpus || write_text(file, policy::format_list(cpus)) == 0;
    ++(moved ? done_.interrupts_moved : done_.interrupts_stuck);
  }
}

/// A container that came into a slice later keeps its CPUs, and the services beside it get all.
bool SystemTasks::place_slices(const Tree& tree) {
  bool is_placed = true;
  for (const char* name : kSlices) {
    const auto slice = hierarchy_.root / name;
    if (!is_there(tree, slice)) continue;
    const bool has_containers = holds_container(tree, slice);
    if (has_containers && !services_.contains(slice)) continue;
    is_placed &= give(slice, has_containers ? online_ : common_);
  }
  return is_placed;
}

bool SystemTasks::give(const std::filesystem::path& service, const GuestCpuSet& cpus) {
  services_[service] = cpus;
  return set_cpuset(hierarchy_, service, cpus) == 0;
}

void SystemTasks::place_task(int pid) {
  if (read_text(roots_.proc / std::to_string(pid) / "comm") == kService) {
    done_.services_moved &= place_service(pid);
  } else {
    place_kernel_thread(pid);
  }
}

/// One that confined itself further stays as it is, unless that is what it was given before. Which
/// task it is tell its flags: they are slow to read.
void SystemTasks::place_kernel_thread(int pid) {
  const auto now = calls_.affinity(pid);
  if (!now) return;
  const bool given = std::ranges::find(earlier_, *now) != earlier_.end();
  if (now->subset_of(common_) && !given) return;
  const unsigned long flags = flags_of(roots_.proc / std::to_string(pid));
  if ((flags & kKernelThread) == 0 || (flags & kBound) != 0) return;
  const bool moved = calls_.set_affinity(pid, common_) == 0;
  ++(moved ? done_.kernel_threads_moved : done_.kernel_threads_stuck);
}

/// By its cgroup: an affinity of its own would be inherited by every container that it starts.
bool SystemTasks::place_service(int pid) {
  if (hierarchy_.kind != CgroupKind::kV1 && hierarchy_.kind != CgroupKind::kV2) return false;
  const std::string path = cgroup_of(roots_.proc / std::to_string(pid), hierarchy_.kind);
  if (is_in_container(path)) return true;
  if (path != "/") return give(hierarchy_.root / path.substr(1), common_);
  const auto directory = hierarchy_.root / kServiceCgroup;
  if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) return false;
  return set_cpuset(hierarchy_, directory, common_) == 0 &&
         write_text(directory / "cgroup.procs", std::to_string(pid)) == 0;
}

}  // namespace ka::agent
