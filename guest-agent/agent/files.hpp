// SPDX-License-Identifier: Apache-2.0
// Files of the guest's kernel. What cannot be read counts as absent,
// and what cannot be written is an errno for the host.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ka::agent {

/// A file without one trailing newline; absent when it cannot be read, or has over 16 MiB.
std::optional<std::string> read_text(const std::filesystem::path& path);

/// Writes with one write(2) to a file that is there. 0, or the errno.
int write_text(const std::filesystem::path& path, const std::string& text);

inline constexpr mode_t kRecordMode = 0600;  ///< of what only the next agent reads

/// Replaces a file of the agent's own, in a directory that it makes. False: it could not.
bool replace_file(const std::filesystem::path& path, const std::string& text, mode_t mode);

/// Names in a directory, sorted; none where there is no directory.
std::vector<std::string> list_names(const std::filesystem::path& path);
/// Those of them that are directories.
std::vector<std::string> list_directories(const std::filesystem::path& path);

/// The numbers in a text, one a line (cgroup.procs), or in a directory (/proc).
std::vector<int> read_numbers(const std::filesystem::path& path);
std::vector<int> list_numbers(const std::filesystem::path& path);

/// A decimal number that fills the whole text.
std::optional<long long> parse_number(std::string_view text);

}  // namespace ka::agent
