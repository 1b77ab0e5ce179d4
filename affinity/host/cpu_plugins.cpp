// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/cpu_plugins.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "affinity/host/movers.hpp"
#include "base/files.hpp"
#include "base/mounts.hpp"

namespace ka::host {
namespace {

namespace fs = std::filesystem;

constexpr std::array kCpuPlugins = {kNriResourcePolicy, kDraDriver, kKoordlet};
constexpr std::size_t kCommLength = 15;  // of which the kernel keeps no more: TASK_COMM_LEN
constexpr std::size_t kMaxMountinfo = std::size_t{16} << 20;

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
std::optional<Directory> locate(const fs::path& path, const std::vector<base::Mount>& mounts) {
  std::optional<Directory> found;
  std::size_t longest = 0;
  for (const base::Mount& mount : mounts) {
    if (!is_at_or_below(path, mount.point) || mount.point.size() < longest) continue;
    longest = mount.point.size();
    const fs::path inside = path.lexically_relative(mount.point);
    found = Directory{std::string(mount.device), (mount.root / inside).lexically_normal()};
  }
  return found;
}

bool shows(const base::Mount& mount, const Directory& directory) {
  return mount.device == directory.device && is_at_or_below(directory.path, mount.root);
}

/// Cannot see is not gone: true where its mounts cannot be read.
bool may_see(const base::ProcFs& proc, const std::string& process, const Directory& directory) {
  const auto mountinfo = base::read_file(proc.root() / process / "mountinfo", kMaxMountinfo);
  if (!mountinfo) return !is_gone(mountinfo);
  return std::ranges::any_of(base::parse_mounts(*mountinfo),
                             [&](const base::Mount& mount) { return shows(mount, directory); });
}

/// NRI's socket is root's alone.
bool may_be_root(const base::ProcFs& proc, const std::string& process) {
  const auto status = base::read_file(proc.root() / process / "status");
  if (!status) return !is_gone(status);
  return status->find("\nUid:\t0\t") != std::string::npos;
}

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

/// Without the index ("10-") by which the runtime orders the plugins that it starts itself.
std::string_view without_index(std::string_view comm) {
  const bool has_index =
      comm.size() > 3 && comm[2] == '-' && is_digit(comm[0]) && is_digit(comm[1]);
  return has_index ? comm.substr(3) : comm;
}

bool is_cpu_plugin(std::string_view comm) {
  const std::string_view name = without_index(comm);
  return std::ranges::any_of(kCpuPlugins, [&](std::string_view known) {
    return comm.size() == kCommLength ? known.starts_with(name) : known == name;
  });
}

/// Of the socket; absent where that is not known.
std::optional<Directory> directory_of(const fs::path& socket, const base::ProcFs& proc) {
  std::error_code ignored;
  const fs::path directory = fs::weakly_canonical(socket, ignored).parent_path();
  const auto own = base::read_file(proc.root() / "self/mountinfo", kMaxMountinfo);
  return own ? locate(directory, base::parse_mounts(*own)) : std::nullopt;
}

}  // namespace

std::string running_cpu_plugins(const base::ProcFs& proc, const fs::path& socket) {
  const auto directory = directory_of(socket, proc);
  std::string list;
  for (const int pid : proc.processes().value_or(std::vector<int>{})) {
    const auto stat = proc.stat(pid);
    if (!stat || !is_cpu_plugin(stat->comm)) continue;
    const std::string process = std::to_string(pid);
    if (!may_be_root(proc, process)) continue;
    if (directory && !may_see(proc, process, *directory)) continue;
    list += (list.empty() ? "" : ", ") + stat->comm + " (pid " + process + ')';
  }
  return list;
}

}  // namespace ka::host
