// SPDX-License-Identifier: Apache-2.0
// The command line of kata-affinity-reporter.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "policy/facts/expected.hpp"

namespace ka::cluster {

struct Options {
  std::string node;
  std::filesystem::path socket = "/run/kata-affinity/api.sock";
  std::filesystem::path account = "/var/run/secrets/kubernetes.io/serviceaccount";
  std::string host, port;     ///< of the API server
  std::int64_t interval = 5;  ///< seconds between two looks at the daemon
  std::int64_t pace = 4;      ///< seconds between two writes, on average
  bool marks_node = true;     ///< label, and taint
  bool taints = true;
  std::filesystem::path nfd_file;  ///< label and taint are NFD's; empty: they are ours
  bool reports_classes = false;
  bool withdraws = false;
};

/// The error is the exit status, and was explained on standard error.
Expected<Options, int> parse(int argc, const char* const* argv);

}  // namespace ka::cluster
