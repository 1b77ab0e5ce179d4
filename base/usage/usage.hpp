// SPDX-License-Identifier: Apache-2.0
// How the programs that parse with CLI11 print help and usage errors.
#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ka::usage {

/// Gives `app` our form of --help, --version and usage errors. Commands added afterwards inherit
/// it. `version` is what --version prints. A usage error is one line:
/// `kata-affinityctl: unknown option "--foo" (see --help)`.
void apply_style(CLI::App& app, const std::string& version);

/// Adds an option for a positive duration, as in "90s", "10m", "2h"; `seconds` gets its value.
CLI::Option* add_duration(CLI::App& app, const std::string& name, std::int64_t& seconds,
                          const std::string& description);

/// Adds --topology: the machine to work on, this one by default.
void add_topology(CLI::App& app, std::string& topology);

}  // namespace ka::usage
