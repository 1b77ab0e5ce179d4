// Kata's shims, found by their command lines: before there is a VMM there is nothing else to go by.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "affinity/base/files.hpp"
#include "affinity/base/process.hpp"
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

/// The sandbox that a process serves as a shim of Kata's; empty for any other process.
std::string sandbox_of_process(const Roots& roots, int pid) {
  const base::ProcFs proc(roots.proc);
  const auto stat = proc.stat(pid);
  if (!stat || !is_shim(roots.proc, pid, stat->comm)) return {};
  if (program_name(roots.proc, pid) == kProxyProgram) return {};
  const auto arguments = proc.cmdline(pid);
  return arguments ? sandbox_of(*arguments) : std::string();
}

}  // namespace

std::optional<int> shim_by_bundle(const Roots& roots, const std::filesystem::path& tasks,
                                  const std::string& sandbox) {
  for (const std::string& space :
       base::list_directory(tasks).value_or(std::vector<std::string>{})) {
    const auto text = base::read_file(tasks / space / sandbox / "shim.pid");
    const int pid = text ? std::atoi(text->c_str()) : 0;
    if (pid > 0 && sandbox_of_process(roots, pid) == sandbox) return pid;
  }
  return std::nullopt;
}

std::map<std::string, int> find_shims(const Roots& roots) {
  const auto processes = base::ProcFs(roots.proc).processes();
  std::map<std::string, int> found;
  for (const int pid : processes.value_or(std::vector<int>{})) {
    std::string sandbox = sandbox_of_process(roots, pid);
    if (!sandbox.empty()) found.emplace(std::move(sandbox), pid);
  }
  return found;
}

std::optional<int> vmm_of_shim(const Roots& roots, int shim) {
  for (const int child : children(roots.proc, shim)) {
    if (is_vmm(roots, child).value_or(false)) return child;
  }
  if (is_vmm(roots, shim).value_or(false)) return shim;
  return std::nullopt;
}

}  // namespace ka::vmm
