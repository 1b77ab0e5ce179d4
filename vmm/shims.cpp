// SPDX-License-Identifier: Apache-2.0
// Kata's shims, found by their command lines: before there is a VMM, nothing else identifies them.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/files.hpp"
#include "base/process.hpp"
#include "vmm/procfs/relatives.hpp"
#include "vmm/threads.hpp"

namespace ka::vmm {
namespace {

/// The sandbox of a shim that serves one. Those that `start` it or `delete` what it left are short.
std::string sandbox_of(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.back() == "start" || arguments.back() == "delete") return {};
  const auto name = std::ranges::find(arguments, "-id");
  const bool has_value = name != arguments.end() && std::next(name) != arguments.end();
  return has_value ? *std::next(name) : std::string();
}

/// A process, and the sandbox that it serves as a shim of Kata's.
struct Shim {
  policy::ProcessId id;
  std::string sandbox;
};

/// Nothing for any other process.
std::optional<Shim> shim_at(const Roots& roots, int pid) {
  const auto stat = base::ProcFs(roots.proc).stat(pid);
  if (!stat || !is_shim(roots.proc, pid, stat->comm) || is_contained(roots, pid)) return {};
  if (program_name(roots.proc, pid) == kProxyProgram) return {};
  const policy::ProcessId id{pid, stat->start_time};
  const auto arguments = arguments_of(roots, id);
  std::string sandbox = arguments ? sandbox_of(*arguments) : std::string();
  if (sandbox.empty()) return {};
  return Shim{id, std::move(sandbox)};
}

/// Absent: it is none, or that cannot be seen.
std::optional<policy::ProcessId> vmm_at(const Roots& roots, int pid, base::Trouble& trouble) {
  const auto examined = examine(roots, pid, Word::kRuntime);
  trouble.record(examined);
  if (!examined || !examined->is_vmm) return {};
  return examined->id;
}

bool is_child_of(const Roots& roots, int pid, int parent, base::Trouble& trouble) {
  const auto stat = base::ProcFs(roots.proc).stat(pid);
  trouble.record(stat);
  return stat && stat->ppid == parent;
}

std::optional<policy::ProcessId> find_vmm(const Roots& roots, int shim, base::Trouble& trouble) {
  for (const int child : children(roots.proc, shim, trouble)) {
    const auto found = vmm_at(roots, child, trouble);
    if (found && is_child_of(roots, child, shim, trouble)) return found;
  }
  return vmm_at(roots, shim, trouble);
}

}  // namespace

std::optional<policy::ProcessId> shim_by_bundle(const Roots& roots,
                                                const std::filesystem::path& tasks,
                                                const std::string& sandbox) {
  for (const std::string& space :
       base::list_directory(tasks).value_or(std::vector<std::string>{})) {
    const auto text =
        base::read_regular_file(tasks / space / sandbox / "shim.pid", kLargestPidFile);
    const int pid = text ? std::atoi(text->c_str()) : 0;
    const auto shim = pid > 0 ? shim_at(roots, pid) : std::nullopt;
    if (shim && shim->sandbox == sandbox) return shim->id;
  }
  return std::nullopt;
}

std::map<std::string, policy::ProcessId> find_shims(const Roots& roots) {
  const auto processes = base::ProcFs(roots.proc).processes();
  std::map<std::string, policy::ProcessId> found;
  for (const int pid : processes.value_or(std::vector<int>{})) {
    if (auto shim = shim_at(roots, pid)) found.emplace(std::move(shim->sandbox), shim->id);
  }
  return found;
}

bool is_shim_of(const Roots& roots, const policy::ProcessId& process, const std::string& sandbox) {
  const auto shim = shim_at(roots, process.pid);
  return shim && shim->id == process && shim->sandbox == sandbox;
}

base::Result<policy::ProcessId> vmm_of_shim(const Roots& roots, const policy::ProcessId& shim) {
  base::Trouble trouble;
  const auto found = find_vmm(roots, shim.pid, trouble);
  // If the shim's pid has been reused, a VMM found there belongs to another sandbox or to none.
  const auto after = identify(roots, shim.pid);
  if (!after) return unexpected(after.error());
  if (*after != shim) return base::fail(base::ErrorCode::kGone, "its shim has ended");
  if (found) return *found;
  if (trouble.none()) return base::fail(base::ErrorCode::kGone, "its shim has no VMM");
  return base::fail(trouble.any()->code,
                    "the processes of its shim cannot be read: " + trouble.any()->message);
}

}  // namespace ka::vmm
