// SPDX-License-Identifier: Apache-2.0
// How the programs that parse with CLI11 print help and usage errors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ka::usage {

/// Gives `app` our form of --help, --version and usage errors. Commands added afterwards inherit
/// it. `version` is what --version prints. A usage error is one line:
/// `kata-affinityctl: unknown option "--foo" (see --help)`.
void apply_style(CLI::App& app, const std::string& version);

/// Puts `command` into a group, as in "Inspect". --help lists one group a line, by the names of its
/// commands; --help-all lists each command with its summary, under the heading "Inspect commands".
void set_group(CLI::App& command, std::string_view group);

/// Adds --help-all, which also lists what --help leaves out. A command that is declared before this
/// accepts the option as well, and does not list it.
void add_help_all(CLI::App& app, const std::string& description);

/// --help-all lists `option`, --help does not.
void leave_to_help_all(CLI::Option& option);

/// Adds an option for a positive duration, as in "90s", "10m", "2h"; `seconds` gets its value.
CLI::Option* add_duration(CLI::App& app, const std::string& name, std::int64_t& seconds,
                          const std::string& description);

/// Adds --topology: the machine to work on, this one by default.
void add_topology(CLI::App& app, std::string& topology);

/// Parses a command line. Returns the exit status if the program is to end: 0 after --help and
/// --version, 2 for wrong usage, which has been printed.
std::optional<int> parse(CLI::App& app, int argc, const char* const* argv);

}  // namespace ka::usage
