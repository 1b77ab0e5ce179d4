// SPDX-License-Identifier: Apache-2.0
// The shims of sandboxes that are being started.
#include <algorithm>
#include <iterator>
#include <utility>

#include "base/files.hpp"
#include "base/process.hpp"
#include "vmm/procfs/relatives.hpp"
#include "vmm/threads.hpp"

namespace ka::vmm {
namespace {

constexpr std::string_view kAnyShim = "containerd-shim";
constexpr std::string_view kKataShim = "containerd-shim-kata";

/// The sandbox that a shim's command line names; empty: none.
std::string named_sandbox(const std::vector<std::string>& arguments) {
  const auto name = std::ranges::find(arguments, "-id");
  const bool has_value = name != arguments.end() && std::next(name) != arguments.end();
  return has_value ? *std::next(name) : std::string();
}

/// A process by its command line, and the sandbox that this names; empty: it is no shim.
struct Candidate {
  std::string sandbox;
  FoundShim shim;
};

/// What a process is to its sandbox. Kata's `start` and our proxy come before Kata's shim itself;
/// that of another runtime shows by its `start` already that there will be none.
Candidate examine_shim(const Roots& roots, int pid) {
  const base::ProcFs proc(roots.proc);
  const auto stat = proc.stat(pid);
  if (!stat || !stat->comm.starts_with(kAnyShim) || is_contained(roots, pid)) return {};
  const auto arguments = proc.cmdline(pid);
  std::string sandbox = arguments ? named_sandbox(*arguments) : std::string();
  if (sandbox.empty()) return {};
  const std::string program = program_name(roots.proc, pid);
  if (!program.starts_with(kKataShim)) return {std::move(sandbox), {ShimKind::kOther, {}}};
  const std::string& action = arguments->back();
  if (program == kProxyProgram || action == "start" || action == "delete") return {};
  return {std::move(sandbox), {ShimKind::kKata, {pid, stat->start_time}}};
}

}  // namespace

FoundShim shim_in_bundle(const Roots& roots, const std::filesystem::path& bundle,
                         const std::string& sandbox) {
  const auto text = base::read_regular_file(bundle / "shim.pid", kLargestPidFile);
  const auto pid = base::parse_number(text.value_or(""));
  if (!pid || *pid <= 0) return {};
  const Candidate found = examine_shim(roots, static_cast<int>(*pid));
  return found.sandbox == sandbox ? found.shim : FoundShim{};
}

StartingShims starting_shims(const Roots& roots) {
  const auto processes = base::ProcFs(roots.proc).processes();
  StartingShims found;
  for (const int pid : processes.value_or(std::vector<int>{})) {
    Candidate candidate = examine_shim(roots, pid);
    if (!candidate.sandbox.empty()) found.emplace(std::move(candidate.sandbox), candidate.shim);
  }
  return found;
}

}  // namespace ka::vmm
