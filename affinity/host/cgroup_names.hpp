// SPDX-License-Identifier: Apache-2.0
// How kubelet, container runtimes, Kata, libvirt and systemd name cgroups, by either cgroup driver.
// The only place on the host that knows. In the guest it is guest-agent/agent/hierarchy.hpp, for
// there kata-agent alone names them. Names of the files in a cgroup: base/cgroup_files.hpp.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ka::host {

inline constexpr std::string_view kPodsSlice = "kubepods.slice";
inline constexpr std::string_view kPodsDirectory = "kubepods";

/// Where kubelet makes the cgroups of pods, below the mount, with systemd and without: those of
/// Guaranteed pods right in the first of each kind, others by their quality of service
/// (pkg/kubelet/cm/qos_container_manager_linux.go).
inline constexpr std::array<std::string_view, 6> kPodParents = {
    kPodsSlice,
    "kubepods.slice/kubepods-burstable.slice",
    "kubepods.slice/kubepods-besteffort.slice",
    kPodsDirectory,
    "kubepods/burstable",
    "kubepods/besteffort"};

/// A pod's quality of service by the name of its cgroup, relative or not. False for one that
/// kubelet did not make.
bool is_guaranteed_pod(std::string_view cgroup);

/// Where a Guaranteed pod's cgroup is, by either driver, below `mount`.
std::vector<std::filesystem::path> guaranteed_pod_cgroups(const std::filesystem::path& mount,
                                                          std::string pod_uid);

/// The container's cgroup around that of one of its processes, which may be deeper (crun, systemd
/// in a container): below kubelet's, and named after an id of 64 digits. Both begin at the root of
/// the hierarchy: "/kubepods/pod1/ID". Empty: there is none.
std::string container_around(const std::string& cgroup);

/// From the container's cgroup around this one, or where there is none from this one, up to its
/// pod's, as container_around() has it. Empty: kubelet made none of them for a pod.
std::vector<std::string> way_to_pod(const std::string& cgroup);

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

/// The uid of the pod that kubelet made this cgroup for, with "-" in it as the API server writes
/// it; empty for a cgroup that is no pod's. kubelet names them pod<uid>, or with systemd
/// kubepods[-<qos>]-pod<uid with "_">.slice (pkg/kubelet/cm/cgroup_manager_linux.go).
std::string pod_uid_of(const std::filesystem::path& directory);

/// True where the cgroup, or one above it, is a unit of systemd.
bool is_systemd_unit(const std::filesystem::path& directory);

/// The sandbox's own cgroup, below `mount`: `named` (relative to the mount) where a source named
/// one, else `of_vmm` where it or one above it is named after the sandbox. Empty: none. A VM that
/// was started by hand shares its cgroup with unrelated processes, and the root cgroup holds the
/// whole machine.
std::filesystem::path own_cgroup(std::string_view sandbox, const std::filesystem::path& named,
                                 const std::filesystem::path& of_vmm,
                                 const std::filesystem::path& mount);

/// The cgroup of a container below `mount`, from the name that an OCI runtime is given
/// (cgroupsPath): a path, or with systemd "SLICE:PREFIX:NAME", which is the unit PREFIX-NAME.scope
/// in that slice. Empty where it is not named after the container: then it may be anyone's.
std::filesystem::path container_cgroup(const std::string& named, std::string_view container,
                                       const std::filesystem::path& mount);

/// Where crun puts the processes of a container whose cgroup is a unit of systemd: a cgroup within
/// (libcrun, find_systemd_subgroup(); its annotation run.oci.systemd.subgroup may name another,
/// which is not looked for). Empty: the cgroup is no such unit.
std::filesystem::path crun_subgroup(const std::filesystem::path& container);

/// Whether a cgroup of this name is itself a unit of systemd: a service, a scope or a slice.
bool is_unit_name(const std::filesystem::path& name);

/// systemd's unit in which a cgroup lies: the innermost service or scope, else the innermost slice.
/// Empty: none.
std::string unit_of(std::string_view cgroup);

/// libvirt keeps cgroups of its own for the threads of a domain (vcpuN, iothreadN, emulator; with
/// version 2 in one more, "libvirt", in between; src/hypervisor/domain_cgroup.c) and writes their
/// cpusets itself when it pins. The cgroup above them bounds the domain.
std::filesystem::path domain_cgroup(std::filesystem::path directory);

/// `directory` is `above`, or lies below it.
bool is_inside(const std::filesystem::path& directory, const std::filesystem::path& above);

}  // namespace ka::host
