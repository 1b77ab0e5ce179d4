// SPDX-License-Identifier: Apache-2.0
// Facts of the node: those that the pods depend on, and those for the report.
#pragma once

#include <boost/json/object.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "affinity/cli/selftest/cri_pods.hpp"
#include "affinity/cli/selftest/pods.hpp"
#include "base/result.hpp"

namespace ka::cli::selftest {

/// Runs a program, by its path or by its name, and returns what it prints.
using RunProgram = std::function<base::Result<std::string>(const std::vector<std::string>& words)>;

/// What the choice of the pods depends on. `images`: the runtime's.
NodeFacts gather_facts(const std::filesystem::path& root, const Kubelet& kubelet,
                       const Assignments& assignments, const std::vector<std::string>& images);

/// The same without kubelet, as the runtime reports it.
base::Result<NodeFacts> gather_facts_of_runtime(const std::filesystem::path& root,
                                                const CriPods& pods,
                                                const Assignments& assignments);

/// Versions, cgroup version, CPUs, Kata's handlers and the settings of the daemon with this pid, as
/// far as they can be read. Absent: no daemon runs.
boost::json::object describe_node(const std::filesystem::path& root, const RunProgram& run,
                                  std::optional<int> daemon);

}  // namespace ka::cli::selftest
