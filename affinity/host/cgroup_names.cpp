// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/cgroup_names.hpp"

#include <algorithm>

namespace ka::host {
namespace {

namespace fs = std::filesystem;

/// crun's default for run.oci.systemd.subgroup (src/libcrun/cgroup-systemd.c).
constexpr std::string_view kSubgroup = "container";

}  // namespace

bool is_guaranteed_pod(std::string_view cgroup) {
  const auto has = [&](std::string_view word) {
    return cgroup.find(word) != std::string_view::npos;
  };
  return has("kubepods") && !has("burstable") && !has("besteffort");
}

bool is_named_after(std::string_view cgroup, std::string_view id) {
  constexpr std::string_view kScope = ".scope", kSeparators = "_-:";
  if (cgroup.ends_with(kScope)) cgroup.remove_suffix(kScope.size());
  if (id.empty() || !cgroup.ends_with(id)) return false;
  cgroup.remove_suffix(id.size());
  return cgroup.empty() || kSeparators.find(cgroup.back()) != std::string_view::npos;
}

bool is_of_container(const fs::path& directory, std::string_view id) {
  return !is_of_monitor(directory) && std::ranges::any_of(directory, [&](const fs::path& part) {
    return is_named_after(part.native(), id);
  });
}

bool is_of_monitor(const fs::path& directory) {
  return std::ranges::any_of(
      directory, [](const fs::path& part) { return part.native().starts_with("crio-conmon-"); });
}

std::string container_name(const fs::path& directory) {
  const bool is_subgroup = directory.filename() == kSubgroup && directory.has_parent_path();
  return (is_subgroup ? directory.parent_path() : directory).filename().string();
}

}  // namespace ka::host
