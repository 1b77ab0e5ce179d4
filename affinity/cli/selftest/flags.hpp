// SPDX-License-Identifier: Apache-2.0
// Flags in the command lines of other programs.
#pragma once

#include <string>
#include <vector>

namespace ka::cli::selftest {

/// The value of a flag, "--name=value" or "--name value"; empty where it is not given.
std::string flag_value(const std::vector<std::string>& words, const std::string& name);

}  // namespace ka::cli::selftest
