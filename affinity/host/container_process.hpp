// SPDX-License-Identifier: Apache-2.0
// A process of a container without a VM, found by the names that kubelet and the runtime give their
// cgroups.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "affinity/host/cgroup.hpp"
#include "base/process.hpp"
#include "base/result.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::host {

/// The cgroup of a container of a Guaranteed pod. Absent: there is none (yet).
std::optional<std::filesystem::path> container_directory(const Cgroups& cgroups,
                                                         const std::string& pod_uid,
                                                         const std::string& container);

/// The process with the lowest number in the cgroup of a container of a Guaranteed pod, or in one
/// right below it. kNotFound: there is none (yet).
base::Result<policy::ThreadKey> container_process(const Cgroups& cgroups, const base::ProcFs& proc,
                                                  const std::string& pod_uid,
                                                  const std::string& container);

}  // namespace ka::host
