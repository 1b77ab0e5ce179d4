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
  if (!stat.movable) return "bound by the kernel";
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

/// The identity is checked before and after: a number may be another thread's by now.
Result<void> KernelThreads::write(const HostMask& mask, const CpuSet& cpus) const {
  const base::ProcFs proc(roots_.proc);
  const auto number = base::parse_number(mask.name.substr(0, mask.name.find(' ')));
  if (!number) return unexpected(number.error());
  const int tid = static_cast<int>(*number);
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
