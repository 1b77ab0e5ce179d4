// SPDX-License-Identifier: Apache-2.0
// The configuration: [affinity] in Kata's own configuration.toml and its drop-ins.
//
// Files are merged as Kata merges them (kata-types' drop_in.rs): the main file, then every file in
// config.d/ beside it in name order, key by key, arrays replaced. Everything outside [affinity] is
// Kata's; everything inside must be known to us.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/log/log.hpp"
#include "base/result.hpp"
#include "policy/plan/settings.hpp"

namespace ka::config {

enum class Mode {
  kFollow,   ///< kubelet decides the cpusets, we place threads after them
  kObserve,  ///< plan and report, write nothing
};

struct Config {
  bool enable = true;
  Mode mode = Mode::kFollow;
  policy::plan::Settings defaults;
  /// Complete settings of the runtime handlers that have some of their own.
  std::map<std::string, policy::plan::Settings> by_handler;
  std::string metrics_listen;  ///< "ADDRESS:PORT", empty: not over TCP
  log::Level log_level = log::Level::kInfo;
  std::filesystem::path state_dir;
  std::filesystem::path kubelet_state;  ///< empty: not read
  std::filesystem::path nri_socket;     ///< empty: the container runtime is not asked
  std::string libvirt_uri;              ///< empty: libvirt is not loaded
  std::vector<std::string> libvirt_domains;
  bool libvirt_config = false;
  bool libvirt_by_annotation = false;  ///< allow_annotations has libvirt_domain
  std::chrono::seconds drift_check{};
  std::string real_shim;  ///< a name, or an absolute path
  /// What was read: the main file and its drop-ins, in the order of merging. Empty: no file has an
  /// [affinity] table and the defaults hold.
  std::vector<std::filesystem::path> files;
};

/// Reads `file` and its drop-ins; without one, the first in Kata's search order that has an
/// [affinity] table, in itself or in a drop-in. `root` is put before the absolute paths of that
/// order. Cpusets must lie within `machine`, unless that is empty. Errors are kInvalid, one line:
/// "<file>:<line>:<column>: ..."; those of files that cannot be read name the file.
base::Result<Config> load_config(const std::optional<std::filesystem::path>& file,
                                 const std::filesystem::path& root = "/",
                                 const policy::CpuSet& machine = {});

}  // namespace ka::config
