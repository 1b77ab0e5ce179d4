// SPDX-License-Identifier: Apache-2.0
// The real shim as a program: what is found, started and asked in its place.
#pragma once

#include <string>
#include <vector>

#include "base/program.hpp"
#include "base/result.hpp"

namespace ka::proxy {

/// The file that a name stands for, as containerd looks for a shim: an absolute path itself, else
/// below PATH, else beside our own program. kGone: there is none.
base::Result<std::string> find_program(const std::string& name);

/// Becomes the program: same arguments, environment, descriptors. Returns only when it cannot.
base::Error become(const std::string& program, const std::vector<std::string>& arguments);

/// Runs the program to its end with its standard output caught; all else is ours. It dies with us.
/// What a shim that starts prints is an address: kInvalid when it prints more than
/// base::kMostOutput.
base::Result<base::Ended> run(const std::string& program,
                              const std::vector<std::string>& arguments);

/// Ends as a process with this status ended.
[[noreturn]] void end_like(int status);

}  // namespace ka::proxy
