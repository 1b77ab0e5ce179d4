// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/kernel_threads.hpp"

#include <optional>

#include "affinity/helper/mask_files.hpp"
#include "affinity/host/undo.hpp"
#include "base/files.hpp"
#include "base/process.hpp"

namespace ka::helper {
namespace {

using base::ErrorCode;
using base::Result;
using base::ThreadStat;
using policy::CpuSet;
using policy::ThreadKey;
using policy::plan::Write;

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

/// A thread of the kernel is a process of its own.
Result<ThreadKey> key_of(const HostMask& mask) {
  const std::size_t space = mask.name.find(' ');
  const auto tid = base::parse_number(mask.name.substr(0, space));
  const auto start = space == std::string::npos ? base::parse_number("")
                                                : base::parse_number(mask.name.substr(space + 1));
  if (!tid || !start) return base::fail(ErrorCode::kGone, mask.title + " is gone");
  return ThreadKey{static_cast<int>(*tid), static_cast<int>(*tid),
                   static_cast<std::uint64_t>(*start)};
}

}  // namespace

KernelThreads::KernelThreads(const Roots& roots, host::AffinityCalls& calls)
    : roots_(roots),
      calls_(calls),
      writer_(
          {[this](const ThreadKey& thread) { return check(thread); },
           [this](const ThreadKey& thread, const CpuSet& cpus) { return calls_.set(thread, cpus); },
           [this](const ThreadKey& thread, const CpuSet& cpus) {
             const Write written{thread, Write::Kind::kMove, false, cpus};
             return host::undo_mask(written, calls_, base::ProcFs(roots_.proc));
           }}) {}

Result<void> KernelThreads::check(const ThreadKey& thread) const {
  const auto stat = base::ProcFs(roots_.proc).stat(thread.pid);
  if (!stat) return unexpected(stat.error());
  if (is_kernel_thread(*stat) && stat->start_time == thread.start_time) return {};
  return base::fail(ErrorCode::kGone, "the thread has ended");
}

Result<std::vector<HostMask>> KernelThreads::read() const {
  writer_.check_unsettled();
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
  if (!online) return unexpected(online.error());
  std::vector<HostMask> masks;
  for (const HostMask& mask : known) {
    if (mask.fixed == kBoundByKernel) continue;
    const auto key = key_of(mask);
    const auto active = key ? calls_.get(key->tid) : unexpected(key.error());
    if (is_gone(active)) continue;
    const bool is_same = active && *active == (mask.cpus & *online);
    auto cpus = is_same ? mask.cpus : allowed(roots_, key->tid);
    if (cpus) masks.push_back({mask.name, mask.title, *std::move(cpus), mask.fixed});
  }
  return masks;
}

Result<void> KernelThreads::write(const HostMask& mask, const CpuSet& cpus) const {
  const auto key = key_of(mask);
  return key ? writer_.write(*key, cpus) : unexpected(key.error());
}

}  // namespace ka::helper
