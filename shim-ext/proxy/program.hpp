// SPDX-License-Identifier: Apache-2.0
// The real shim as a program: what is found, started and asked in its place.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace ka::proxy {

/// The file that a name stands for, as containerd looks for a shim: an absolute path itself, else
/// below PATH, else beside our own program. kGone: there is none.
base::Result<std::string> find_program(const std::string& name);

/// Becomes the program: same arguments, environment, descriptors. Returns only when it cannot.
base::Error become(const std::string& program, const std::vector<std::string>& arguments);

/// What a shim that starts prints is an address. One that prints more than this is broken.
inline constexpr std::size_t kMaxOutput = std::size_t{1} << 20;

struct Ran {
  int status = 0;  ///< as wait(2) has it
  std::string output;
};

/// Runs the program to its end with its standard output caught; all else is ours. It dies with us.
/// kInvalid: it printed more than kMaxOutput, and was ended.
base::Result<Ran> run(const std::string& program, const std::vector<std::string>& arguments);

/// Ends as a process with this status ended.
[[noreturn]] void end_like(int status);

}  // namespace ka::proxy
