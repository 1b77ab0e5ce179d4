// SPDX-License-Identifier: Apache-2.0
// Where machines come from: the running host, a recorded one, an invented one, a file.
//
// Ids: `cpu` and `numa` are the kernel's numbers. `core`, `socket` and `l3` are hwloc's logical
// indexes, since the kernel's core ids are unique only within a socket, and caches have none on
// older kernels. CPUs outside any L3 share one a node.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/facts/topology.hpp"

namespace ka::host {

/// The machine described by the kernel's trees (sys/, proc/) below `root`: "/" is the one we run
/// on, any other a recorded one, as hwloc-gather-topology makes them. Offline CPUs are in it,
/// each as a core of its own, since of them the kernel reports only the node.
///
/// hwloc takes a root only from the environment (HWLOC_FSROOT), which is set for the time of the
/// call: not to be called while other threads use the environment. It never runs a thread of ours
/// on other CPUs: hwloc's CPUID backend, which would, is not used. kInvalid is what a recorded
/// machine says; of the one we run on every error may pass.
base::Result<policy::Topology> read_machine(const std::filesystem::path& root = "/");

/// A machine invented by hwloc's synthetic syntax: "pack:2 numa:2 l3:1 core:4 pu:2".
base::Result<policy::Topology> read_synthetic(const std::string& description);

/// hwloc's XML.
base::Result<policy::Topology> read_xml(const std::filesystem::path& file);

/// What `--topology` takes: "host", "synthetic:<description>", the directory of a recorded machine,
/// or a file of hwloc XML or of JSON (recognized by the first character).
base::Result<policy::Topology> load_topology(const std::string& where);

/// The same, where it is the host and has other CPUs online than `online`. Absent: nothing has
/// changed, or it cannot be read, which the next call tries again.
std::optional<policy::Topology> changed_topology(const std::string& where,
                                                 const policy::CpuSet& online);

}  // namespace ka::host
