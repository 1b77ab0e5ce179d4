// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/kernel_threads.hpp"

#include <sched.h>

#include <cerrno>
#include <optional>

#include "affinity/helper/mask_files.hpp"
#include "base/files.hpp"

namespace ka::helper {
namespace {

using base::Result;
using base::ThreadStat;
using policy::CpuSet;

constexpr int kKthreadd = 2;
constexpr std::string_view kField = "\nCpus_allowed_list:\t";

bool is_kernel_thread(const ThreadStat& stat) {
  return stat.tid == kKthreadd || stat.ppid == kKthreadd;
}

bool is_of_vm(const ThreadStat& stat) {
  return stat.comm.starts_with("vhost-") || stat.comm.starts_with("kvm-");
}

std::string name_of(const ThreadStat& stat) {
  return std::to_string(stat.tid) + ' ' + std::to_string(stat.start_time);
}

/// Threads of interrupt handlers go where their interrupt goes, when it next comes
/// (irq_thread_check_affinity() in kernel/irq/manage.c).
std::string why_fixed(const ThreadStat& stat) {
  if (!stat.movable) return kBoundByKernel;
  return stat.comm.starts_with("irq/") ? "follows its interrupt when that next comes" : "";
}

/// sched_getaffinity(2) would leave out CPUs that are offline.
std::optional<CpuSet> allowed(const Roots& roots, int tid) {
  const auto text = base::read_file(roots.proc / std::to_string(tid) / "status");
  const std::size_t at = text ? text->find(kField) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  const std::size_t begin = at + kField.size();
  const auto cpus = policy::parse_list<policy::CpuTag>(
      std::string_view(*text).substr(begin, text->find('\n', begin) - begin));
  return cpus ? std::optional(*cpus) : std::nullopt;
}

/// Without CPUs that are offline.
Result<CpuSet> active_cpus(int tid, std::size_t size) {
  cpu_set_t* mask = CPU_ALLOC(size);
  if (mask == nullptr) return base::fail_errno(ENOMEM, "sched_getaffinity");
  const std::size_t bytes = CPU_ALLOC_SIZE(size);
  CPU_ZERO_S(bytes, mask);
  CpuSet cpus;
  const int failed = ::sched_getaffinity(tid, bytes, mask) == 0 ? 0 : errno;
  for (std::size_t cpu = 0; failed == 0 && cpu < size; ++cpu) {
    if (CPU_ISSET_S(cpu, bytes, mask)) cpus.add(static_cast<int>(cpu));
  }
  CPU_FREE(mask);
  if (failed == 0) return cpus;
  return base::fail_errno(failed, "sched_getaffinity");
}

/// 0 where it has none.
int tid_of(const HostMask& mask) {
  const auto number = base::parse_number(mask.name.substr(0, mask.name.find(' ')));
  return number ? static_cast<int>(*number) : 0;
}

Result<void> set_affinity(int tid, const CpuSet& cpus) {
  const auto size = static_cast<std::size_t>(cpus.last()) + 1;
  cpu_set_t* mask = CPU_ALLOC(size);
  if (mask == nullptr) return base::fail_errno(ENOMEM, "sched_setaffinity");
  const std::size_t bytes = CPU_ALLOC_SIZE(size);
  CPU_ZERO_S(bytes, mask);
  for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), bytes, mask);
  const int failed = ::sched_setaffinity(tid, bytes, mask) == 0 ? 0 : errno;
  CPU_FREE(mask);
  if (failed == 0) return {};
  return base::fail_errno(failed, "sched_setaffinity");
}

}  // namespace

Result<std::vector<HostMask>> KernelThreads::read() const {
  const base::ProcFs proc(roots_.proc);
  const auto pids = proc.processes();
  if (!pids) return unexpected(pids.error());
  std::vector<HostMask> masks;
  for (const int pid : *pids) {
    const auto stat = proc.stat(pid);
    if (!stat || !is_kernel_thread(*stat) || is_of_vm(*stat)) continue;
    if (auto cpus = allowed(roots_, pid)) {
      masks.push_back({name_of(*stat), stat->comm, *std::move(cpus), why_fixed(*stat)});
    }
  }
  return masks;
}

/// What the kernel binds cannot be given back. Another thread may have a number by now: its mask
/// is never written under the old one's name.
Result<std::vector<HostMask>> KernelThreads::read_again(const std::vector<HostMask>& known) const {
  const auto online = read_cpus(roots_.sys / "devices/system/cpu/online", SetFormat::kList);
  const auto possible = read_possible(roots_.sys);
  if (!online) return unexpected(online.error());
  if (!possible) return unexpected(possible.error());
  const auto size = static_cast<std::size_t>(possible->last()) + 1;
  std::vector<HostMask> masks;
  for (const HostMask& mask : known) {
    if (mask.fixed == kBoundByKernel) continue;
    const int tid = tid_of(mask);
    const auto active = active_cpus(tid, size);
    if (is_gone(active)) continue;
    const bool is_same = active && *active == (mask.cpus & *online);
    auto cpus = is_same ? mask.cpus : allowed(roots_, tid);
    if (cpus) masks.push_back({mask.name, mask.title, *std::move(cpus), mask.fixed});
  }
  return masks;
}

/// The identity is checked before and after: a number may be another thread's by now.
Result<void> KernelThreads::write(const HostMask& mask, const CpuSet& cpus) const {
  const base::ProcFs proc(roots_.proc);
  const int tid = tid_of(mask);
  const auto is_it = [&] {
    const auto stat = proc.stat(tid);
    return stat && is_kernel_thread(*stat) && name_of(*stat) == mask.name;
  };
  if (!is_it()) return base::fail(base::ErrorCode::kGone, mask.title + " is gone");
  auto done = set_affinity(tid, cpus);
  if (done && !is_it()) return base::fail(base::ErrorCode::kGone, mask.title + " is gone");
  return done;
}

}  // namespace ka::helper
