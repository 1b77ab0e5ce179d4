// SPDX-License-Identifier: Apache-2.0
// The configuration: [affinity] in Kata's own configuration.toml and its drop-ins.
//
// Files are merged as Kata merges them (kata-types' drop_in.rs): the main file, then every file in
// config.d/ beside it in name order, key by key, arrays replaced. Everything outside [affinity] is
// Kata's; everything inside must be known to us.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "affinity/config/keys.hpp"
#include "base/result.hpp"

namespace ka::config {

/// Reads `file` and its drop-ins; without one, the first of candidates() that has an [affinity]
/// table, in itself or in a drop-in. What is nearly one is an error. `root` is put before the
/// absolute paths of that order. Cpusets must lie within `machine`, unless that is empty. Errors
/// are one line. kInvalid: what a file says ("<file>:<line>:<column>: ..."), that `file` does not
/// exist, that a file is not regular or too large. Any other code: a file or directory cannot be
/// read, which may pass.
base::Result<Config> load_config(const std::optional<std::filesystem::path>& file,
                                 const std::filesystem::path& root = "/",
                                 const policy::CpuSet& machine = {});

/// The defaults.
Config default_config();

/// The keys whose new value the daemon follows only from its next start on.
std::vector<std::string_view> keys_for_next_start(const Config& now, const Config& next);
/// Keys and tables that were set and have no effect in this mode.
std::vector<std::string_view> keys_without_effect(const Config& config);

}  // namespace ka::config
