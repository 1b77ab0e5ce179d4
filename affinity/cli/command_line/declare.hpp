// SPDX-License-Identifier: Apache-2.0
// How the parts of the command line declare their commands. Private to this room.
#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <string>

#include "affinity/cli/command_line/options.hpp"

namespace ka::cli {

inline constexpr const char* kSandboxHelp = "id, pod, namespace/pod, or a unique prefix of one";
inline constexpr const char* kRootHelp = "root of the node's file system";
inline constexpr const char* kCpusHelp = "cpuset, as in 0-3,8";

/// A subcommand that fills its options, and says so in `chosen` when it was called.
template <typename Options>
CLI::App& add_command(CLI::App& app, Command& chosen, const std::shared_ptr<Options>& options,
                      const char* name, const char* summary) {
  CLI::App* command = app.add_subcommand(name, summary);
  command->fallthrough();
  command->callback([options, &chosen] { chosen = *options; });
  return *command;
}

/// An option whose value is a `type`: a word of the help, as in "--report FILE".
template <typename Value>
CLI::Option* add_value(CLI::App& command, const char* name, const char* type, Value& value,
                       const std::string& meaning) {
  return command.add_option(name, value, meaning)->type_name(type);
}

/// An online command about one sandbox, or about all where its id may be left out.
template <typename Options>
CLI::App& add_about_sandbox(CLI::App& app, Command& chosen, const std::shared_ptr<Options>& options,
                            const char* name, const char* summary, bool required) {
  CLI::App& command = add_command(app, chosen, options, name, summary);
  command.add_option("SANDBOX", options->sandbox, kSandboxHelp)->required(required);
  return command;
}

/// What a request for CPUs consists of; the number of CPUs comes back.
CLI::Option* declare_request(CLI::App& command, AllocateOptions& options);

/// The commands that need no daemon: topology, plan, allocate, hints, merge-hints, simulate.
void declare_offline(CLI::App& app, Command& chosen);

}  // namespace ka::cli
