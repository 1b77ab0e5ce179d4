// SPDX-License-Identifier: Apache-2.0
// Runs other programs to completion and captures their output.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/wait_limit.hpp"

namespace ka::base {

/// What one may print, in bytes, where its caller names no other limit.
inline constexpr std::size_t kMostOutput = std::size_t{1} << 20;
/// How long one may run, likewise.
inline constexpr std::chrono::minutes kMostTime{10};

struct Command {
  std::filesystem::path file;
  std::vector<std::string> words;  ///< its arguments, the name that it is called by first
  /// "NAME=value". Absent: ours.
  std::optional<std::vector<std::string>> environment = {};
  std::filesystem::path directory = {};        ///< where it runs; empty: here
  std::optional<std::string_view> input = {};  ///< its standard input; absent: ours
  bool catches_errors = false;                 ///< else its standard error is ours
  std::size_t most_output = kMostOutput;       ///< bytes that it may print; beyond, it is ended
  WaitLimit wait_limit = WaitLimit::of(kMostTime);  ///< how long it may run; beyond, it is ended
};

/// How a program ended, and what it printed.
struct Ended {
  int status = 0;  ///< as wait(2) has it; exit status 127: it could not be executed
  std::string output;
  std::string errors;  ///< the first 4 KiB, where they are caught
};

/// Runs it to its end; it dies with us. kInvalid: it printed more than it may; kTransient: it ran
/// for longer, or was interrupted.
Result<Ended> run_program(const Command& command);

/// Whether this is a program that we may execute.
bool is_program(const std::filesystem::path& file);

/// The first of these directories that has a program of this name; absent: none has.
std::optional<std::filesystem::path> find_program(
    std::string_view name, std::span<const std::filesystem::path> directories);

}  // namespace ka::base
