// SPDX-License-Identifier: Apache-2.0
// The command line of kata-affinity-helper.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "affinity/helper/host_masks.hpp"
#include "policy/facts/expected.hpp"

namespace ka::helper {

struct Options {
  std::optional<std::filesystem::path> config;
  std::filesystem::path socket;  ///< empty: systemd's
  std::filesystem::path state = "/run/kata-affinity/helper";
  std::string topology = "host";
  Roots roots;
  bool restore = false;
};

/// The error is the exit status, and was explained on standard error.
Expected<Options, int> parse(int argc, const char* const* argv);

}  // namespace ka::helper
