// SPDX-License-Identifier: Apache-2.0
// Small files, read and written by system calls: /proc, /sys, cgroups, state. No streams: an entry
// of /proc that dies while it is read must be an error value.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace ka::base {

/// Reads a whole file of at most `limit` bytes; a longer one is kInvalid. For files of the kernel,
/// and for what a user names, which may be a pipe.
Result<std::string> read_file(const std::filesystem::path& path, std::size_t limit = 1 << 20);

/// Like read_file() for a file that other programs may replace: kInvalid for anything but a regular
/// file. Never blocks on a FIFO or acquires a terminal.
Result<std::string> read_regular_file(const std::filesystem::path& path,
                                      std::size_t limit = 1 << 20);

/// Reads a file of one record that the kernel writes at once (seq_file: the stat lines of /proc)
/// with one read(2) into `buffer`; what does not fit is cut off.
Result<std::string_view> read_record(const std::filesystem::path& path, std::span<char> buffer);

/// Writes `text` with one write(2), as kernel files want it. The file must exist.
Result<void> write_kernel_file(const std::filesystem::path& path, const std::string& text);

/// Replaces a file so that a reader, also after a crash of ours, finds the complete old or the new
/// content: temporary file in the same directory, rename. Not meant to outlive a reboot. The
/// umask does not affect its mode.
Result<void> write_atomically(const std::filesystem::path& path, const std::string& text,
                              mode_t mode = 0600);

/// Makes `path` where it is missing and locks it (flock(2)) until the descriptor is closed.
/// kConflict when another process has locked it.
Result<Fd> lock_file(const std::filesystem::path& path);

/// Opens a directory, to list it or to work relative to it.
Result<Fd> open_directory(const std::filesystem::path& path);

/// The names in a directory without "." and "..", sorted.
Result<std::vector<std::string>> list_directory(const std::filesystem::path& path);

/// The names of the directories in a directory, without "." and "..", sorted. Links are none.
Result<std::vector<std::string>> list_subdirectories(const std::filesystem::path& path);

/// The names of a directory that are numbers (threads below /proc/<pid>/task), ascending.
Result<std::vector<int>> list_numbers(const std::filesystem::path& path);

/// The same for a directory that was just opened: what was read once is not read again.
Result<std::vector<int>> list_numbers_at(int directory);

/// Target of a symbolic link.
Result<std::string> read_link(const std::filesystem::path& path);

/// A decimal number that fills the whole text, one trailing newline aside.
Result<long long> parse_number(std::string_view text);

}  // namespace ka::base
