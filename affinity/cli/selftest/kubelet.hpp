// SPDX-License-Identifier: Apache-2.0
// The kubelet of this node, by its process and its files; kubelet itself is not asked.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/cli/selftest/assignments.hpp"
#include "base/result.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::cli::selftest {

struct Kubelet {
  int pid = 0;
  std::filesystem::path manifests;  ///< staticPodPath; empty: it runs no static pods
  std::filesystem::path state;      ///< its cpu_manager_state
  policy::CpuSet reserved;          ///< reservedSystemCPUs; empty: not given by number
  bool has_api_server = false;      ///< without one it resolves no RuntimeClass
};

/// The scalar values at the top level of a KubeletConfiguration, YAML or JSON, by key.
std::map<std::string, std::string> top_level_scalars(std::string_view text);

/// Paths in the answer begin with `root`. kNotFound: no kubelet runs. An error of any other kind:
/// its configuration cannot be read.
base::Result<Kubelet> find_kubelet(const std::filesystem::path& root);

/// Reads cpu_manager_state. kConflict: the policy is not static, so no container owns CPUs.
base::Result<Assignments> read_assignments(const std::filesystem::path& state);

}  // namespace ka::cli::selftest
