// SPDX-License-Identifier: Apache-2.0
// The content of the files with a container's CPUs.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "affinity/line/views.hpp"
#include "policy/facts/sandbox.hpp"
#include "policy/facts/topology.hpp"

namespace ka::containers {

/// The files that a container can read, by name: `cpus.json`, the part for it of its
/// guest's own file, and `environment`, the same for shells (KATA_AFFINITY_CPUS="6-7").
/// Values are empty until its guest has reported.
std::map<std::string, std::string> container_texts(const line::SandboxView& view,
                                                   const std::string& container);

/// Variables for a container that is about to be created: where it finds its files (`seen_at`), and
/// what is so already. Which vCPUs it will have is not known yet, and a program's environment stays
/// as it is.
std::vector<std::pair<std::string, std::string>> container_variables(
    const policy::ContainerFacts& container, const policy::Topology& topology,
    const std::string& seen_at);

}  // namespace ka::containers
