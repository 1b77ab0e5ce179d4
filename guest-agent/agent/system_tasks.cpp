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
  is_first_ &= state_ == State::kUntouched && earlier_.empty();
  state_ = apart ? State::kApart : State::kRestored;
  done_ = {};
  hierarchy_ = hierarchy;
  if (std::ranges::find(earlier_, common_) == earlier_.end()) earlier_.push_back(common_);
  common_ = common;
  if (apart) keep_record();
  online_ = online;
  for (auto& [service, cpus] : services_) cpus = common;
  if (interrupts || interrupts_placed_) {
    place_interrupts(interrupts && apart);
    interrupts_placed_ |= apart;
  }
  // The kernel's workers that are bound to no CPU follow a mask of their own.
  place_mask(roots_.sys / "devices/virtual/workqueue/cpumask", "workqueues", apart);
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
  is_first_ = false;
  if (state_ != State::kRestored) return keep_record();
  std::error_code none;
  std::filesystem::remove(record(), none);
  originals_.clear();
}

/// From an agent that was killed. False: it kept nothing off any CPU.
bool SystemTasks::adopt() {
  const auto text = read_text(record());
  if (!text) return false;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (const auto cpus = policy::parse_list<policy::GuestCpuTag>(line)) earlier_.push_back(*cpus);
  }
  interrupts_placed_ = true;
  is_first_ = false;
  originals_.load();
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

/// What it has by the agent's doing. The kernel gives new interrupts and threads such a mask, too;
/// nothing has one before the agent's first round.
bool SystemTasks::is_ours(const GuestCpuSet& cpus) const {
  if (is_first_) return false;
  return cpus == common_ || std::ranges::find(earlier_, cpus) != earlier_.end();
}

void SystemTasks::place_mask(const std::filesystem::path& file, const std::string& key,
                             bool is_kept_off) {
  const auto now = policy::parse_mask<policy::GuestCpuTag>(read_text(file).value_or(""));
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
  place_mask(irqs / "default_smp_affinity", "new interrupts", is_kept_off);
  for (const auto& [irq, now] : masks) {
    const std::string number = std::to_string(irq);
    const auto cpus = is_kept_off ? common_ : originals_.find("interrupt " + number, online_);
    const auto file = irqs / number / "smp_affinity_list";
    const bool moved = now == cpus || write_text(file, policy::format_list(cpus)) == 0;
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
  const auto stat = read_text(roots_.proc / std::to_string(pid) / "stat").value_or("");
  const auto flags = field_of(stat, kFlagsField);
  if ((flags & kKernelThread) == 0 || (flags & kBound) != 0) return;
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
  if (is_in_container(path)) return true;
  if (path != "/") return give(hierarchy_.root / path.substr(1), common_);
  const auto directory = hierarchy_.root / kServiceCgroup;
  if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) return false;
  return set_cpuset(hierarchy_, directory, common_) == 0 &&
         write_text(directory / "cgroup.procs", std::to_string(pid)) == 0;
}

}  // namespace ka::agent
