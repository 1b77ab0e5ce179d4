// SPDX-License-Identifier: Apache-2.0
// How runtimes name the cgroups of containers and sandboxes, by either cgroup driver.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace ka::host {

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
