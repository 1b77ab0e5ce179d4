// SPDX-License-Identifier: Apache-2.0
// The current process of a pid, and whether it is a VMM.
#include <algorithm>
#include <optional>
#include <string>

#include "base/files.hpp"
#include "base/process.hpp"
#include "vmm/procfs/known_vmms.hpp"
#include "vmm/procfs/kvm_fds.hpp"
#include "vmm/procfs/relatives.hpp"
#include "vmm/procfs/thread_list.hpp"
#include "vmm/threads.hpp"

namespace ka::vmm {
namespace {

using policy::ProcessId;

/// Empty: there is none to see.
base::Result<std::string> pid_namespace(const Roots& roots, const std::string& process) {
  auto found = base::read_link(roots.proc / process / "ns/pid");
  return is_gone(found) ? std::string() : found;
}

/// As is_contained(). The error: that cannot be seen now.
base::Result<bool> contained(const Roots& roots, int pid) {
  const auto own = pid_namespace(roots, "self");
  if (!own || own->empty()) return own.transform([](const auto&) { return false; });
  return pid_namespace(roots, std::to_string(pid)).transform([&own](const std::string& other) {
    return other != *own;
  });
}

base::Result<bool> runs_beside_us(const Roots& roots, int pid) {
  return contained(roots, pid).transform([](bool is_contained) { return !is_contained; });
}

/// The shim of a Kata runtime runs beside us; a container's program that takes its name does not.
base::Result<bool> is_child_of_shim(const Roots& roots, int pid) {
  const auto stat = base::ProcFs(roots.proc).stat(pid);
  if (!stat) return unexpected(stat.error());
  if (const auto beside = runs_beside_us(roots, pid); !beside || !*beside) return beside;
  base::Trouble trouble;
  for (const ProcessId& shim :
       shim_ancestors(roots.proc, {.pid = pid, .ppid = stat->ppid}, trouble)) {
    const auto beside = runs_beside_us(roots, shim.pid);
    trouble.record(beside);
    if (beside && *beside) return true;
  }
  if (!trouble.none()) return unexpected(*trouble.any());
  return false;
}

base::Result<bool> is_believed(const Roots& roots, int pid, Word word) {
  switch (word) {
    case Word::kOperator:
      return true;
    case Word::kRuntime:
      return runs_beside_us(roots, pid);
    case Word::kTenant:
      return is_child_of_shim(roots, pid);
  }
  return false;
}

bool is_dead(const base::ThreadStat& stat) { return stat.state == 'Z' || stat.state == 'X'; }

/// A thread that runs after the first one has ended. /proc/<pid> shows program and open files as
/// the first thread has them: none any more.
std::optional<int> find_survivor(const Roots& roots, int pid) {
  const base::ProcFs proc(roots.proc);
  const auto first = proc.stat(pid);
  if (!first || !is_dead(*first)) return std::nullopt;
  for (const int tid : proc.threads(pid).value_or(std::vector<int>{})) {
    const auto stat = proc.stat(pid, tid);
    if (stat && !is_dead(*stat)) return tid;
  }
  return std::nullopt;
}

/// By the name of its program.
base::Result<bool> is_believed_vmm(const Roots& roots, int tid, Word word) {
  const auto program = read_program_name(roots.proc, tid);
  if (!program && !is_gone(program)) return unexpected(program.error());
  if (!is_vmm_program(program.value_or(""))) return false;
  return is_believed(roots, tid, word);
}

/// A VM that is open proves it whatever else cannot be seen.
base::Result<bool> shows_proof(const Roots& roots, int tid, Word word) {
  const auto believed = is_believed_vmm(roots, tid, word);
  if (believed && *believed) return true;
  const auto fds = read_fds(roots.proc, tid);
  if (!fds) return unexpected(fds.error());
  return fds->kvm_vms > 0 ? true : believed;
}

base::Result<bool> has_proof(const Roots& roots, int pid, Word word) {
  auto proof = shows_proof(roots, pid, word);
  if (!proof || *proof) return proof;
  const auto survivor = find_survivor(roots, pid);
  if (!survivor) return false;
  proof = shows_proof(roots, *survivor, word);
  if (!is_gone(proof)) return proof;
  return base::fail(base::ErrorCode::kTransient,
                    "the first thread of process " + std::to_string(pid) +
                        " has ended, and its other threads do not show its program");
}

auto ended(int pid) {
  return base::fail(base::ErrorCode::kGone, "process " + std::to_string(pid) + " has exited");
}

}  // namespace

base::Result<ProcessId> identify(const Roots& roots, int pid) {
  const auto group = thread_group(roots.proc, pid);
  if (!group) return unexpected(group.error());
  const auto stat = base::ProcFs(roots.proc).stat(*group);
  if (!stat) return unexpected(stat.error());
  return ProcessId{*group, stat->start_time};
}

bool is_contained(const Roots& roots, int pid) { return contained(roots, pid).value_or(true); }

base::Result<Examined> examine(const Roots& roots, int pid, Word word) {
  const auto id = identify(roots, pid);
  if (!id) return unexpected(id.error());
  const auto is_vmm = has_proof(roots, id->pid, word);
  // What was read in between may have been another process's.
  const auto after = identify(roots, id->pid);
  if (!after) return unexpected(after.error());
  if (*after != *id) return ended(pid);
  if (!is_vmm) return unexpected(is_vmm.error());
  return Examined{*id, *is_vmm};
}

base::Result<std::vector<std::string>> arguments_of(const Roots& roots, const ProcessId& process) {
  auto arguments = base::ProcFs(roots.proc).cmdline(process.pid);
  const auto after = identify(roots, process.pid);
  if (!after) return unexpected(after.error());
  if (*after != process) return ended(process.pid);
  return arguments;
}

}  // namespace ka::vmm
