// SPDX-License-Identifier: Apache-2.0
// Which of the node's Kata installations and runtime handlers setup is about.
#pragma once

#include <filesystem>
#include <vector>

#include "affinity/cli/command_line/options.hpp"
#include "affinity/cli/kata/kata_config.hpp"
#include "affinity/config/handlers.hpp"
#include "base/result.hpp"

namespace ka::cli {

/// All that were found, and the files that --kata-config names.
base::Result<std::vector<Installation>> all_installations(const SetupOptions& options);

/// Those of the handlers that --handler names; all without it. kInvalid: there is no such handler,
/// or its configuration is not there; kNotFound: there is no Kata.
base::Result<std::vector<Installation>> chosen_installations(const SetupOptions& options);

/// The handler whose shim the proxy is to start: the one that --handler names, or the only one.
/// Where containerd has none, Kata's usual. kInvalid: several could be meant.
base::Result<config::Handler> handler_behind_proxy(const config::Containerd& containerd,
                                                   const SetupOptions& options);

}  // namespace ka::cli
