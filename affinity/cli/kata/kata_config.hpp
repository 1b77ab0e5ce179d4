// SPDX-License-Identifier: Apache-2.0
// Kata's and containerd's configuration as `doctor` and `setup` read it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "affinity/config/entries.hpp"
#include "base/result.hpp"

namespace ka::cli {

using KeyPath = std::vector<std::string>;

std::optional<bool> flag_at(const config::Entries& entries, const KeyPath& path);
/// Empty where there is none.
std::string text_at(const config::Entries& entries, const KeyPath& path);

/// A number, whole or not, of every table [hypervisor.NAME] that has it: Kata reads one of them.
std::vector<double> hypervisor_numbers(const config::Entries& entries, const std::string& key);

/// Values of a file and of the drop-ins that Kata merges over it.
base::Result<config::Entries> read_merged(const std::filesystem::path& main);

/// A runtime handler of containerd that starts Kata's shim.
struct KataHandler {
  std::string name;          ///< "kata-qemu"
  std::string runtime_type;  ///< "io.containerd.kata-qemu.v2"
  std::string config_path;   ///< of its options; empty: Kata's search order
};

/// What containerd's config.toml below `root` says, and the files of conf.d that it imports. No
/// version reads conf.d unasked: 2.2 and later only write the import into what `containerd config
/// default` prints.
struct Containerd {
  int version = 2;  ///< of the format; 3 since containerd 2.0
  bool imports_conf_d = false;
  std::vector<KataHandler> handlers;  ///< those of config.toml first
  std::vector<std::string> proxied;   ///< names of handlers that start our proxy
};

/// kGone where there is no config.toml. A file of conf.d that cannot be read names no handlers.
base::Result<Containerd> read_containerd(const std::filesystem::path& root);

/// The configuration files of Kata that are there: of containerd's handlers first, as Kata's
/// runtimes obey their option ConfigPath first, then those of Kata's search order. Symbolic links
/// are followed, and each file is named once.
std::vector<std::filesystem::path> find_kata(const std::filesystem::path& root);

/// Kata's configuration with the [affinity] table that the daemon reads, unless it is started with
/// --config: of the first file that has one, in itself or in a drop-in. Absent: no file has one.
std::optional<config::Entries> read_affinity(const std::filesystem::path& root);

}  // namespace ka::cli
