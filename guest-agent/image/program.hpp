// SPDX-License-Identifier: Apache-2.0
// External programs without which an image cannot be read or made.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ka::image {

/// A program's output and exit status.
struct Ended {
  int status = 0;  ///< its exit status; 128 and more: a signal
  std::string out;
  std::string err;  ///< the first 4 KiB

  /// The last line of `err`.
  std::string input_error() const;
};

struct Call {
  std::vector<std::string> words;   ///< the program, found in PATH, and its arguments
  std::filesystem::path directory;  ///< where it runs; empty: here
  std::string_view input;           ///< its standard input
  std::size_t most = 1 << 20;       ///< bytes that it may print; beyond, it is killed
};

/// Runs it to its end. kUnavailable: there is no such program; kInvalid: it prints too much.
base::Result<Ended> run(const Call& call);

}  // namespace ka::image
