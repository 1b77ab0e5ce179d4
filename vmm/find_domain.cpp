// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "base/process.hpp"
#include "vmm/threads.hpp"

namespace ka::vmm {
namespace {

bool has_uuid(const base::ProcFs& proc, int pid, std::string_view uuid) {
  const auto arguments = proc.cmdline(pid);
  if (!arguments) return false;
  const auto option = std::ranges::find(*arguments, "-uuid");
  return option != arguments->end() && option + 1 != arguments->end() && *(option + 1) == uuid;
}

}  // namespace

base::Result<policy::ProcessId> find_domain(const Roots& roots, std::string_view uuid) {
  const base::ProcFs proc(roots.proc);
  const auto processes = proc.processes();
  if (!processes) return unexpected(processes.error());
  std::vector<policy::ProcessId> found;
  for (const int pid : *processes) {
    if (!has_uuid(proc, pid, uuid)) continue;
    const auto examined = examine(roots, pid, Word::kRuntime);
    if (examined && examined->is_vmm) found.push_back(examined->id);
  }
  if (found.size() == 1) return found.front();
  const std::string name = "domain with uuid " + std::string(uuid);
  if (found.empty()) {
    return base::fail(base::ErrorCode::kNotFound, "no process on this machine is the " + name);
  }
  return base::fail(base::ErrorCode::kConflict, "several processes claim to be the " + name);
}

}  // namespace ka::vmm
