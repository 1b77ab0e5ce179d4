// Small files of the kernel, by system calls. Errors are errnos: the agent has few words.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ka::agent {

/// At most 1 MiB of a file, without one trailing newline; absent when it cannot be read.
std::optional<std::string> read_text(const std::filesystem::path& path);

/// Writes with one write(2) to a file that is there. 0, or the errno.
int write_text(const std::filesystem::path& path, const std::string& text);

/// Replaces a file by a whole new one, making its directory. 0, or the errno.
int replace_file(const std::filesystem::path& path, const std::string& text);

/// Names in a directory, sorted; none where there is no directory. `directories`: only those.
std::vector<std::string> list_names(const std::filesystem::path& path, bool directories = false);

/// The numbers in a text, one a line (cgroup.procs), or in a directory (/proc).
std::vector<int> read_numbers(const std::filesystem::path& path);
std::vector<int> list_numbers(const std::filesystem::path& path);

/// A decimal number that fills the whole text.
std::optional<long long> parse_number(std::string_view text);

}  // namespace ka::agent
