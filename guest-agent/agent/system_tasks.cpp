// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/system_tasks.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include "guest-agent/agent/files.hpp"

namespace ka::agent {
namespace {

using policy::GuestCpuSet;

constexpr int kTasksAtOnce = 8;
constexpr const char* kService = "kata-agent";
/// For services that have no cgroup of their own (kata-agent as the guest's first program).
constexpr const char* kServiceCgroup = "kata-affinity";

constexpr const char* kDefaultMask = "default_smp_affinity";                 ///< below /proc/irq
constexpr const char* kWorkqueueMask = "devices/virtual/workqueue/cpumask";  ///< below /sys
// Their keys in the record.
constexpr const char* kNewInterrupts = "new interrupts";
constexpr const char* kWorkqueues = "workqueues";

// include/linux/sched.h: a kernel thread, and one whose CPUs the kernel does not let anyone change.
constexpr unsigned long long kKernelThread = 0x00200000;
constexpr unsigned long long kBound = 0x04000000;

// Fields of /proc/<pid>/stat (proc_pid_stat(5)).
constexpr int kFlagsField = 9, kStartField = 22;

/// Behind the name's last parenthesis; 0 where it cannot be read.
unsigned long long field_of(const std::string& stat, int wanted) {
  std::size_t at = stat.rfind(')');
  for (int field = 3; field <= wanted && at != std::string::npos; ++field) {
    at = stat.find(' ', at + 1);
  }
  if (at == std::string::npos) return 0;
  const auto number =
      parse_number(std::string_view(stat).substr(at + 1, stat.find(' ', at + 1) - at - 1));
  return static_cast<unsigned long long>(number.value_or(0));
}

/// A thread of the kernel's that is bound to no CPU.
bool is_movable(const std::string& stat) {
  const auto flags = field_of(stat, kFlagsField);
  return (flags & kKernelThread) != 0 && (flags & kBound) == 0;
}

auto read_mask(const std::filesystem::path& file) {
  return policy::parse_mask<policy::GuestCpuTag>(read_text(file).value_or(""));
}

/// A number of a thread alone is another one's later.
std::string key_of(int pid, const std::string& stat) {
  return "thread " + std::to_string(pid) + ' ' + std::to_string(field_of(stat, kStartField));
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

}  // namespace

void SystemTasks::begin(const Hierarchy& hierarchy, const Tree& tree, const GuestCpuSet& common,
                        const GuestCpuSet& online, bool interrupts) {
  const bool apart = common != online;
  if (state_ == State::kUntouched && !adopt() && !apart) return;
  online_ = online;
  if (apart) remember_alike(common);
  state_ = apart ? State::kApart : State::kRestored;
  done_ = {};
  hierarchy_ = hierarchy;
  if (std::ranges::find(earlier_, common_) == earlier_.end()) earlier_.push_back(common_);
  common_ = common;
  if (apart) keep_record();
  if (interrupts || interrupts_placed_) {
    place_interrupts(interrupts && apart);
    interrupts_placed_ |= apart;
  }
  // The kernel's workers that are bound to no CPU follow a mask of their own.
  place_mask(roots_.sys / kWorkqueueMask, kWorkqueues, apart);
  const bool has_cpusets = hierarchy.kind == CgroupKind::kV1 || hierarchy.kind == CgroupKind::kV2;
  done_.services_moved = has_cpusets && (apart ? services_.confine(hierarchy, tree, common, online)
                                               : services_.give_back(hierarchy, online));
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
  if (state_ != State::kRestored) return keep_record();
  std::error_code none;
  std::filesystem::remove(record(), none);
  originals_.clear();
  services_.clear_record();
}

/// From an agent that was killed. False: it kept nothing off any CPU, or has given all back: masks
/// that are recorded still mean nothing.
bool SystemTasks::adopt() {
  const auto text = read_text(record());
  if (!text) {
    originals_.clear();
    return false;
  }
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (const auto cpus = policy::parse_list<policy::GuestCpuTag>(line)) earlier_.push_back(*cpus);
  }
  interrupts_placed_ = true;
  originals_.load();
  services_.adopt();
  return true;
}

/// All that something may have by the agent's doing: what it is given now, and what it was given
/// before and may have still. What cannot be recorded is placed nevertheless: it is lost only with
/// the agent.
void SystemTasks::keep_record() const {
  std::string text = policy::format_list(common_);
  for (const GuestCpuSet& cpus : earlier_) {
    if (!cpus.empty() && cpus != common_) text += '\n' + policy::format_list(cpus);
  }
  if (read_text(record()) != text) replace_file(record(), text, kRecordMode);
}

std::filesystem::path SystemTasks::record() const { return roots_.run / "kata-affinity/apart"; }

void SystemTasks::record(policy::GuestReport& report) const {
  report.interrupts_moved = done_.interrupts_moved;
  report.interrupts_stuck = done_.interrupts_stuck;
  report.kernel_threads_moved = done_.kernel_threads_moved;
  report.kernel_threads_stuck = done_.kernel_threads_stuck;
  report.services_moved = done_.services_moved;
}

/// What it has by the agent's doing. The kernel gives new interrupts and threads such a mask, too.
bool SystemTasks::is_ours(const GuestCpuSet& cpus) const {
  return cpus == common_ || std::ranges::find(earlier_, cpus) != earlier_.end();
}

/// Records what has just these CPUs, and by others' doing: once the agent has given them to
/// anything, nobody could tell, least of all an agent that comes after this one was killed.
void SystemTasks::remember_alike(const GuestCpuSet& cpus) {
  if (is_ours(cpus)) return;
  const auto remember = [&](const std::string& key, const auto& now) {
    if (now && *now == cpus) originals_.remember_first(key, cpus, online_);
  };
  const auto irqs = roots_.proc / "irq";
  for (const int irq : list_numbers(irqs)) {
    const std::string number = std::to_string(irq);
    const auto text = read_text(irqs / number / "smp_affinity_list").value_or("");
    remember("interrupt " + number, policy::parse_list<policy::GuestCpuTag>(text));
  }
  remember(kNewInterrupts, read_mask(irqs / kDefaultMask));
  remember(kWorkqueues, read_mask(roots_.sys / kWorkqueueMask));
  for (const int pid : list_numbers(roots_.proc)) {
    if (calls_.affinity(pid) != cpus) continue;
    const std::string stat = stat_of(pid);
    if (is_movable(stat)) originals_.remember_first(key_of(pid, stat), cpus, online_);
  }
  originals_.save();
}

void SystemTasks::place_mask(const std::filesystem::path& file, const std::string& key,
                             bool is_kept_off) {
  const auto now = read_mask(file);
  const bool is_of_others = now && !is_ours(*now);
  if (is_of_others && !is_kept_off) return;
  if (is_of_others) originals_.remember(key, *now, online_);
  originals_.save();
  write_text(file, policy::format_mask(is_kept_off ? common_ : originals_.find(key, online_)));
}

/// All that they were is on disk before the first is changed.
void SystemTasks::place_interrupts(bool is_kept_off) {
  const auto irqs = roots_.proc / "irq";
  std::map<int, GuestCpuSet> masks;
  for (const int irq : list_numbers(irqs)) {
    const auto text = read_text(irqs / std::to_string(irq) / "smp_affinity_list");
    const auto now = policy::parse_list<policy::GuestCpuTag>(text.value_or(""));
    if (!text || !now) continue;
    const bool is_of_others = !is_ours(*now);
    if (is_of_others && !is_kept_off) continue;
    masks[irq] = *now;
    if (is_of_others) originals_.remember("interrupt " + std::to_string(irq), *now, online_);
  }
  place_mask(irqs / kDefaultMask, kNewInterrupts, is_kept_off);
  for (const auto& [irq, now] : masks) {
    const std::string number = std::to_string(irq);
    const auto cpus = is_kept_off ? common_ : originals_.find("interrupt " + number, online_);
    const auto file = irqs / number / "smp_affinity_list";
    const bool moved = now == cpus || write_text(file, policy::format_list(cpus)) == 0;
    ++(moved ? done_.interrupts_moved : done_.interrupts_stuck);
  }
}

std::string SystemTasks::stat_of(int pid) const {
  return read_text(roots_.proc / std::to_string(pid) / "stat").value_or("");
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
  const std::string stat = stat_of(pid);
  if (!is_movable(stat)) return;
  const std::string key = key_of(pid, stat);
  const bool is_apart = state_ == State::kApart;
  if (is_apart && !given) originals_.remember(key, *now, online_);
  originals_.save();
  const auto& cpus = is_apart ? common_ : originals_.find(key, online_);
  const bool moved = calls_.set_affinity(pid, cpus) == 0;
  ++(moved ? done_.kernel_threads_moved : done_.kernel_threads_stuck);
}

/// By its cgroup: an affinity of its own would be inherited by every container that it starts.
bool SystemTasks::place_service(int pid) {
  if (hierarchy_.kind != CgroupKind::kV1 && hierarchy_.kind != CgroupKind::kV2) return false;
  const std::string path = cgroup_of(roots_.proc / std::to_string(pid), hierarchy_.kind);
  if (is_in_container(path) || state_ == State::kRestored) return true;
  if (path != "/") return services_.give(hierarchy_.root / path.substr(1));
  const auto directory = hierarchy_.root / kServiceCgroup;
  if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) return false;
  return services_.give(directory) &&
         write_text(directory / "cgroup.procs", std::to_string(pid)) == 0;
}

}  // namespace ka::agent
