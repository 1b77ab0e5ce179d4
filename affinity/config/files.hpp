// SPDX-License-Identifier: Apache-2.0
// Where Kata's configuration lies: the search order, and the drop-ins beside a file.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.hpp"
#include "base/trouble.hpp"

namespace ka::config {

/// The largest configuration file or drop-in that is read.
inline constexpr std::size_t kMaxFile = std::size_t{1} << 20;

/// Kata's search order below `root`: the administrator's place first, and runtime-rs, the default
/// runtime, before the Go runtime (kata-types' default.rs; katautils' config-settings.go). Files
/// that are not there are among them.
std::vector<std::filesystem::path> standard(const std::filesystem::path& root);

/// All places where Kata may be configured: the search order, what kata-deploy hands to each shim
/// and custom runtime (its artifacts/install.rs) of each of its installations, and the files that
/// handlers of containerd and CRI-O name. A file may be among them twice, by a symbolic link.
/// `unseen`: why places may be missing.
std::vector<std::filesystem::path> candidates(const std::filesystem::path& root,
                                              base::Trouble& unseen);

/// The files of config.d beside the file that a symbolic link leads to, in name order: Kata merges
/// them key by key.
base::Result<std::vector<std::filesystem::path>> drop_ins(const std::filesystem::path& main);

}  // namespace ka::config
