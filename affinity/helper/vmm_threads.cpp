// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/vmm_threads.hpp"

#include <string_view>

#include "vmm/procfs/known_vmms.hpp"
#include "vmm/procfs/relatives.hpp"
#include "vmm/procfs/thread_names.hpp"

namespace ka::helper {
namespace {

using base::ErrorCode;
using base::Result;
using policy::ThreadKey;

bool is_vcpu_name(std::string_view comm) {
  const auto meaning = vmm::read_thread_name(comm);
  return meaning && meaning->role == policy::Role::kVcpu;
}

/// Dragonball is a part of the shim.
bool is_in_shim(const base::ProcFs& proc, int pid, std::string_view thread) {
  const auto main = proc.stat(pid);
  return main && vmm::is_shim(proc.root(), pid, main->comm) && is_vcpu_name(thread);
}

}  // namespace

Result<base::ThreadStat> VmmThreads::read(const ThreadKey& thread) const {
  auto stat = proc_.stat(thread.pid, thread.tid);
  if (stat && stat->start_time != thread.start_time) {
    return base::fail(ErrorCode::kGone, "the thread has ended");
  }
  return stat;
}

Result<void> VmmThreads::check_identity(const ThreadKey& thread) const {
  const auto stat = read(thread);
  return stat ? Result<void>() : unexpected(stat.error());
}

Result<void> VmmThreads::check(const ThreadKey& thread) const {
  const auto stat = read(thread);
  if (!stat) return unexpected(stat.error());
  const bool is_of_vmm = vmm::is_vmm_program(vmm::program_name(proc_.root(), thread.pid)) ||
                         is_in_shim(proc_, thread.pid, stat->comm);
  if (is_of_vmm) return {};
  return base::fail(ErrorCode::kConflict, "the thread is not of a known VMM");
}

}  // namespace ka::helper
