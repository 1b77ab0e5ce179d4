// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "base/files.hpp"
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

/// What libvirt's file names; 0: it names none, or there is none.
int pid_by_libvirt(const Roots& roots, const std::string& name) {
  if (name.find('/') != std::string::npos) return 0;
  const auto file = roots.run / "libvirt/qemu" / (name + ".pid");
  const auto text = base::read_regular_file(file, kLargestPidFile);
  return text ? static_cast<int>(base::parse_number(*text).value_or(0)) : 0;
}

}  // namespace

base::Result<policy::ProcessId> find_domain(const Roots& roots, const std::string& name,
                                            std::string_view uuid) {
  const base::ProcFs proc(roots.proc);
  const auto processes = proc.processes();
  if (!processes) return unexpected(processes.error());
  std::vector<policy::ProcessId> found;
  for (const int pid : *processes) {
    if (!has_uuid(proc, pid, uuid)) continue;
    const auto examined = examine(roots, pid, Word::kRuntime);
    if (!examined && !is_gone(examined)) return unexpected(examined.error());
    if (examined && examined->is_vmm) found.push_back(examined->id);
  }
  if (found.size() == 1) return found.front();
  const std::string domain = "domain with uuid " + std::string(uuid);
  if (found.empty()) {
    return base::fail(base::ErrorCode::kNotFound, "no process on this machine is the " + domain);
  }
  const auto own = std::ranges::find(found, pid_by_libvirt(roots, name), &policy::ProcessId::pid);
  if (own != found.end()) return *own;
  return base::fail(base::ErrorCode::kConflict, "several processes claim to be the " + domain);
}

}  // namespace ka::vmm
