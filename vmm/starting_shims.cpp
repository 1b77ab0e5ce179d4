// SPDX-License-Identifier: Apache-2.0
// The shim of one sandbox while it is being started.
#include <algorithm>
#include <iterator>

#include "base/files.hpp"
#include "base/process.hpp"
#include "vmm/procfs/relatives.hpp"
#include "vmm/threads.hpp"

namespace ka::vmm {
namespace {

constexpr std::string_view kAnyShim = "containerd-shim";
constexpr std::string_view kKataShim = "containerd-shim-kata";

bool names_sandbox(const std::vector<std::string>& arguments, const std::string& sandbox) {
  const auto name = std::ranges::find(arguments, "-id");
  return name != arguments.end() && std::next(name) != arguments.end() &&
         *std::next(name) == sandbox;
}

/// What a process is to the sandbox. Kata's `start` and our proxy come before Kata's shim itself;
/// that of another runtime shows by its `start` already that there will be none.
FoundShim examine(const Roots& roots, int pid, const std::string& sandbox) {
  const base::ProcFs proc(roots.proc);
  const auto stat = proc.stat(pid);
  if (!stat || !stat->comm.starts_with(kAnyShim) || is_contained(roots, pid)) return {};
  const auto arguments = proc.cmdline(pid);
  if (!arguments || !names_sandbox(*arguments, sandbox)) return {};
  const std::string program = program_name(roots.proc, pid);
  if (!program.starts_with(kKataShim)) return {ShimKind::kOther, {}};
  const std::string& action = arguments->back();
  if (program == kProxyProgram || action == "start" || action == "delete") return {};
  return {ShimKind::kKata, {pid, stat->start_time}};
}

}  // namespace

FoundShim shim_in_bundle(const Roots& roots, const std::filesystem::path& bundle,
                         const std::string& sandbox) {
  const auto text = base::read_file(bundle / "shim.pid", 64);
  const auto pid = base::parse_number(text.value_or(""));
  return pid && *pid > 0 ? examine(roots, static_cast<int>(*pid), sandbox) : FoundShim{};
}

FoundShim shim_by_command(const Roots& roots, const std::string& sandbox) {
  const auto processes = base::ProcFs(roots.proc).processes();
  for (const int pid : processes.value_or(std::vector<int>{})) {
    const FoundShim found = examine(roots, pid, sandbox);
    if (found.kind != ShimKind::kNone) return found;
  }
  return {};
}

}  // namespace ka::vmm
