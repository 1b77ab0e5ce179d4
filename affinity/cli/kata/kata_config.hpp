// SPDX-License-Identifier: Apache-2.0
// Kata's configuration as `doctor` and `setup` read it.
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

/// The configuration files of Kata that are there, of all installations and in the order in which
/// the daemon looks for [affinity] (config::candidates()). Symbolic links are followed, and each
/// file is named once.
std::vector<std::filesystem::path> find_kata(const std::filesystem::path& root);

/// A configuration file of Kata, and who uses it.
struct Installation {
  std::filesystem::path config;
  std::vector<std::string> handlers;  ///< of containerd and CRI-O, by name; may be empty
};

/// The same files, with their handlers. A handler that names no file has the first of Kata's search
/// order that is there.
std::vector<Installation> find_installations(const std::filesystem::path& root);

/// The drop-in of `setup`, beside a configuration file of Kata.
inline constexpr const char* kSetupDropIn = "config.d/50-affinity.toml";

/// The drop-in that Kata merges after that of `setup` beside `main`, if it has this key: its value
/// holds; empty: none.
std::filesystem::path overriding(const config::Entries& merged, const KeyPath& key,
                                 const std::filesystem::path& main);

/// The two runtimes have different defaults: by the path of a configuration file.
bool is_rust(const std::filesystem::path& config);

/// Kata's configuration with the [affinity] table that the daemon reads, unless it is started with
/// --config: of the first file that has one, in itself or in a drop-in. Absent: no file has one.
std::optional<config::Entries> read_affinity(const std::filesystem::path& root);

}  // namespace ka::cli
