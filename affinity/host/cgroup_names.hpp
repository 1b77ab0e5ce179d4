// SPDX-License-Identifier: Apache-2.0
// How kubelet and runtimes name the cgroups of pods, containers and sandboxes, by either cgroup
// driver.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

namespace ka::host {

inline constexpr std::string_view kPodsSlice = "kubepods.slice";

/// Where kubelet makes the cgroups of pods, below the mount, with systemd and without: those of
/// Guaranteed pods right in the first of each kind, others by their quality of service
/// (pkg/kubelet/cm/qos_container_manager_linux.go).
inline constexpr std::array<std::string_view, 6> kPodParents = {
    kPodsSlice,
    "kubepods.slice/kubepods-burstable.slice",
    "kubepods.slice/kubepods-besteffort.slice",
    "kubepods",
    "kubepods/burstable",
    "kubepods/besteffort"};

/// A pod's quality of service by the name of its cgroup, relative or not. False for one that
/// kubelet did not make.
bool is_guaranteed_pod(std::string_view cgroup);

/// ID, kata_ID, cri-containerd-ID.scope, crio-ID.scope, kubepods-podUID.slice:cri-containerd:ID.
bool is_named_after(std::string_view cgroup, std::string_view id);

/// The cgroup of a container's processes. crun puts another one into it: crio-ID.scope/container.
bool is_of_container(const std::filesystem::path& directory, std::string_view id);

/// Of CRI-O's monitor of a container (crio-conmon-ID.scope, without systemd crio-conmon-ID): it
/// lies in the pod's slice with the container's id in its name, and no cpuset of kubelet's is
/// written to it.
bool is_of_monitor(const std::filesystem::path& directory);

/// What names a container in a message: the last part that is not crun's own.
std::string container_name(const std::filesystem::path& directory);

}  // namespace ka::host
