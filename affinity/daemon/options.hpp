// SPDX-License-Identifier: Apache-2.0
// The daemon's command line.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "policy/facts/expected.hpp"
#include "vmm/facts/facts.hpp"

namespace ka::daemon {

struct Options {
  std::optional<std::filesystem::path> config;  ///< absent: the first in Kata's search order
  std::filesystem::path socket = "/run/kata-affinity/api.sock";
  std::optional<std::filesystem::path> state_dir;  ///< in place of the configuration's
  std::string topology = "host";
  vmm::Roots roots;
  bool check_config = false;  ///< check the configuration and exit
};

/// Parses arguments. What asks for no daemon (--help, --version) and what is wrong is answered on
/// standard output or error; the error is then the exit status.
Expected<Options, int> parse(int argc, const char* const* argv);

}  // namespace ka::daemon
