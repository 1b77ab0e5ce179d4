// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/container_process.hpp"

#include <filesystem>
#include <optional>

#include "affinity/host/cgroup_names.hpp"
#include "base/files.hpp"
#include "base/split.hpp"
#include "base/text.hpp"

namespace ka::host {
namespace {

namespace fs = std::filesystem;
using base::Result;

std::optional<fs::path> find_container(const fs::path& pod, const std::string& container) {
  const auto names = base::list_directory(pod);
  if (!names) return std::nullopt;
  for (const std::string& name : *names) {
    const bool is_its_own = is_named_after(name, container) && !is_of_monitor(name);
    if (is_its_own && base::is_printable(name)) return pod / name;
  }
  return std::nullopt;
}

std::optional<int> lowest_process(const fs::path& cgroup) {
  const auto text = base::read_file(cgroup / "cgroup.procs");
  if (!text) return std::nullopt;
  std::optional<int> lowest;
  for (const std::string_view line : base::split(*text, '\n')) {
    const auto pid = base::parse_number(line);
    if (pid && *pid > 0 && (!lowest || *pid < *lowest)) lowest = static_cast<int>(*pid);
  }
  return lowest;
}

std::optional<int> first_process(const fs::path& container) {
  if (const auto pid = lowest_process(container)) return pid;
  const auto names = base::list_directory(container);
  if (!names) return std::nullopt;
  for (const std::string& name : *names) {
    if (const auto pid = lowest_process(container / name)) return pid;
  }
  return std::nullopt;
}

}  // namespace

std::optional<fs::path> container_directory(const Cgroups& cgroups, const std::string& pod_uid,
                                            const std::string& container) {
  for (const fs::path& pod : guaranteed_pod_cgroups(cgroups.mount(), pod_uid)) {
    if (auto directory = find_container(pod, container)) return directory;
  }
  return std::nullopt;
}

Result<policy::ThreadKey> container_process(const Cgroups& cgroups, const base::ProcFs& proc,
                                            const std::string& pod_uid,
                                            const std::string& container) {
  for (const fs::path& pod : guaranteed_pod_cgroups(cgroups.mount(), pod_uid)) {
    const auto directory = find_container(pod, container);
    const auto pid = directory ? first_process(*directory) : std::nullopt;
    if (!pid) continue;
    const auto stat = proc.stat(*pid);
    if (!stat) return unexpected(stat.error());
    return policy::ThreadKey{*pid, *pid, stat->start_time};
  }
  return base::fail(base::ErrorCode::kNotFound, "it has no process in a cgroup of its own");
}

}  // namespace ka::host
