// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/cgroup_names.hpp"

#include <algorithm>
#include <cctype>

namespace ka::host {
namespace {

namespace fs = std::filesystem;

/// crun's default for run.oci.systemd.subgroup (src/libcrun/cgroup-systemd.c).
constexpr std::string_view kSubgroup = "container";

constexpr std::string_view kScope = ".scope", kSlice = ".slice", kService = ".service";

/// systemd nests slices by the dashes in their names: a-b.slice lies in a.slice.
fs::path slice_path(std::string name) {
  if (name.ends_with(kSlice)) name.resize(name.size() - kSlice.size());
  fs::path path;
  for (std::size_t dash = name.find('-'); dash != std::string::npos;
       dash = name.find('-', dash + 1)) {
    if (dash > 0) path /= name.substr(0, dash) + std::string(kSlice);
  }
  return name.empty() || name == "-" ? path : path / (name + std::string(kSlice));
}

/// ID, cri-containerd-ID.scope, crio-ID.scope, of any container.
bool ends_in_id(std::string_view name) {
  constexpr std::size_t kIdSize = 64;
  if (name.ends_with(kScope)) name.remove_suffix(kScope.size());
  if (name.size() < kIdSize) return false;
  return std::ranges::all_of(name.substr(name.size() - kIdSize),
                             [](unsigned char c) { return std::isxdigit(c) != 0; });
}

}  // namespace

std::vector<fs::path> guaranteed_pod_cgroups(const fs::path& mount, std::string pod_uid) {
  const fs::path plain = mount / kPodsDirectory / ("pod" + pod_uid);
  std::ranges::replace(pod_uid, '-', '_');
  return {mount / kPodsSlice / ("kubepods-pod" + pod_uid + ".slice"), plain};
}

std::string container_around(const std::string& cgroup) {
  fs::path around = "/";
  for (const fs::path& part : fs::path(cgroup).relative_path()) {
    around /= part;
    const std::string top = std::next(around.begin())->string();
    if (top != kPodsSlice && top != kPodsDirectory) return {};
    if (ends_in_id(part.native())) return around.string();
  }
  return {};
}

std::vector<std::string> way_to_pod(const std::string& cgroup) {
  const std::string container = container_around(cgroup);
  std::vector<std::string> way;
  for (fs::path path = container.empty() ? cgroup : container; !pod_uid_of(path).empty();
       path = path.parent_path()) {
    way.push_back(path.string());
  }
  return way;
}

bool is_guaranteed_pod(std::string_view cgroup) {
  const auto has = [&](std::string_view word) {
    return cgroup.find(word) != std::string_view::npos;
  };
  return has("kubepods") && !has("burstable") && !has("besteffort");
}

bool is_named_after(std::string_view cgroup, std::string_view id) {
  constexpr std::string_view kSeparators = "_-:";
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

std::string pod_uid_of(const fs::path& directory) {
  constexpr std::string_view kPod = "pod", kPods = "kubepods";
  bool is_kubelets = false;
  for (const fs::path& part : directory) {
    std::string_view name = part.native();
    if (name.ends_with(kSlice)) name.remove_suffix(kSlice.size());
    const std::size_t at = name.starts_with(kPod) ? 0 : name.rfind("-pod");
    is_kubelets |= name.starts_with(kPods);
    if (!is_kubelets || at == std::string_view::npos) continue;
    name.remove_prefix(at + kPod.size() + (at == 0 ? 0 : 1));
    std::string uid(name.substr(0, name.find_first_of(".:")));
    std::ranges::replace(uid, '_', '-');
    return uid;
  }
  return {};
}

bool is_systemd_unit(const fs::path& directory) {
  const std::string& path = directory.native();
  return path.find(kSlice) != std::string::npos || path.find(kScope) != std::string::npos;
}

fs::path own_cgroup(std::string_view sandbox, const fs::path& named, const fs::path& of_vmm,
                    const fs::path& mount) {
  const fs::path directory = named.empty() ? of_vmm : mount / named.relative_path();
  const fs::path below = directory.lexically_normal().lexically_relative(mount);
  if (below.empty() || below == "." || *below.begin() == "..") return {};
  const auto is_own = [&](const fs::path& part) { return is_named_after(part.native(), sandbox); };
  return !named.empty() || std::ranges::any_of(below, is_own) ? directory : fs::path();
}

fs::path container_cgroup(const std::string& named, std::string_view container,
                          const fs::path& mount) {
  const std::size_t first = named.find(':');
  const std::size_t last = named.rfind(':');
  fs::path below = fs::path(named).relative_path();
  if (first != std::string::npos) {
    if (first == last) return {};
    const std::string prefix = named.substr(first + 1, last - first - 1);
    below = slice_path(named.substr(0, first)) /
            (prefix + (prefix.empty() ? "" : "-") + named.substr(last + 1) + std::string(kScope));
  }
  below = below.lexically_normal().relative_path();
  if (below.empty() || *below.begin() == "..") return {};
  return is_named_after(below.filename().native(), container) ? mount / below : fs::path();
}

fs::path crun_subgroup(const fs::path& container) {
  return container.extension() == kScope ? container / kSubgroup : fs::path();
}

bool is_unit_name(const fs::path& name) {
  const auto kind = name.extension();
  return kind == kScope || kind == kService || kind == kSlice;
}

std::string unit_of(std::string_view cgroup) {
  std::string_view slice;
  while (!cgroup.empty()) {
    const std::size_t at = cgroup.rfind('/');
    const std::string_view part = at == std::string_view::npos ? cgroup : cgroup.substr(at + 1);
    if (part.ends_with(kService) || part.ends_with(kScope)) return std::string(part);
    if (slice.empty() && part.ends_with(kSlice)) slice = part;
    cgroup = at == std::string_view::npos ? "" : cgroup.substr(0, at);
  }
  return std::string(slice);
}

fs::path domain_cgroup(fs::path directory) {
  const auto is_threads = [](const std::string& name) {
    return name == "emulator" || name.starts_with("vcpu") || name.starts_with("iothread");
  };
  if (is_threads(directory.filename())) directory = directory.parent_path();
  if (directory.filename() == "libvirt") directory = directory.parent_path();
  return directory;
}

bool is_inside(const fs::path& directory, const fs::path& above) {
  const fs::path below = directory.lexically_relative(above);
  return !below.empty() && *below.begin() != "..";
}

}  // namespace ka::host
