// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/cpu_plugins.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string_view>
#include <vector>

#include "affinity/host/mounts.hpp"
#include "affinity/host/movers.hpp"
#include "base/files.hpp"

namespace ka::host {
namespace {

namespace fs = std::filesystem;

constexpr std::array kCpuPlugins = {kNriResourcePolicy, kDraDriver, kKoordlet};
constexpr std::size_t kCommLength = 15;  // of which the kernel keeps no more: TASK_COMM_LEN

/// A directory by its filesystem, so that it is the same one wherever it is mounted.
struct Directory {
  std::string device;
  fs::path path;  ///< from the filesystem's root
};

bool is_at_or_below(const fs::path& path, const fs::path& parent) {
  const auto rest = path.lexically_relative(parent);
  return !rest.empty() && *rest.begin() != "..";
}

/// By the last of the mounts that hold `path`, which hides those before it.
std::optional<Directory> locate(const fs::path& path, const std::vector<Mount>& mounts) {
  std::optional<Directory> found;
  std::size_t longest = 0;
  for (const Mount& mount : mounts) {
    if (!is_at_or_below(path, mount.point) || mount.point.size() < longest) continue;
    longest = mount.point.size();
    const fs::path inside = path.lexically_relative(mount.point);
    found = Directory{std::string(mount.device), (mount.root / inside).lexically_normal()};
  }
  return found;
}

bool shows(const Mount& mount, const Directory& directory) {
  return mount.device == directory.device && is_at_or_below(directory.path, mount.root);
}

bool sees(const base::ProcFs& proc, const std::string& process, const Directory& directory) {
  const auto mountinfo = base::read_file(proc.root() / process / "mountinfo");
  return mountinfo && std::ranges::any_of(parse_mounts(*mountinfo), [&](const Mount& mount) {
           return shows(mount, directory);
         });
}

/// NRI's socket is root's alone.
bool is_root(const base::ProcFs& proc, const std::string& process) {
  const auto status = base::read_file(proc.root() / process / "status");
  return status && status->find("\nUid:\t0\t") != std::string::npos;
}

/// Without the index ("10-") by which the runtime orders the plugins that it starts itself.
std::string_view without_index(std::string_view comm) {
  const bool has_index =
      comm.size() > 3 && comm[2] == '-' && std::isdigit(comm[0]) != 0 && std::isdigit(comm[1]) != 0;
  return has_index ? comm.substr(3) : comm;
}

bool is_cpu_plugin(std::string_view comm) {
  const std::string_view name = without_index(comm);
  return std::ranges::any_of(kCpuPlugins, [&](std::string_view known) {
    return comm.size() == kCommLength ? known.starts_with(name) : known == name;
  });
}

}  // namespace

std::string running_cpu_plugins(const base::ProcFs& proc, const fs::path& socket) {
  std::error_code ignored;
  const fs::path directory = fs::weakly_canonical(socket, ignored).parent_path();
  const auto own = base::read_file(proc.root() / "self/mountinfo");
  const auto located = own ? locate(directory, parse_mounts(*own)) : std::nullopt;
  if (!located) return "";
  std::string list;
  for (const int pid : proc.processes().value_or(std::vector<int>{})) {
    const auto stat = proc.stat(pid);
    if (!stat || !is_cpu_plugin(stat->comm)) continue;
    const std::string process = std::to_string(pid);
    if (!is_root(proc, process) || !sees(proc, process, *located)) continue;
    list += (list.empty() ? "" : ", ") + stat->comm + " (pid " + process + ')';
  }
  return list;
}

}  // namespace ka::host
