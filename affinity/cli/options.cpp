#include "affinity/cli/options.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

namespace ka::cli {
namespace {

constexpr const char* kTopologyHelp = "host, synthetic:DESCRIPTION, or a file of hwloc XML or JSON";

/// A subcommand that fills its options, and says so in `chosen` when it was called.
template <typename Options>
CLI::App& add_command(CLI::App& app, Command& chosen, const std::shared_ptr<Options>& options,
                      const char* name, const char* summary) {
  CLI::App* command = app.add_subcommand(name, summary);
  command->fallthrough();
  command->callback([options, &chosen] { chosen = *options; });
  return *command;
}

void declare_topology(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<TopologyOptions>();
  CLI::App& command = add_command(app, chosen, options, "topology", "show a machine");
  command.add_option("--topology", options->topology, kTopologyHelp)->capture_default_str();
}

void declare_plan(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<PlanOptions>();
  CLI::App& command =
      add_command(app, chosen, options, "plan", "say what would be done, without a daemon");
  command.add_option("--topology", options->topology, kTopologyHelp)->capture_default_str();
  command.add_option("--scenario", options->scenario, "what-if scenario, JSON (- for stdin)")
      ->required();
  command.add_option("--previous", options->previous, "an earlier output of plan --json");
}

void declare_commands(CLI::App& app, Command& chosen) {
  declare_topology(app, chosen);
  declare_plan(app, chosen);
}

}  // namespace

Expected<Invocation, Exit> parse(int argc, const char* const* argv, std::ostream& out,
                                 std::ostream& err) {
  CLI::App app("Shows and steers which CPUs the threads of VM sandboxes run on.",
               "kata-affinityctl");
  app.set_version_flag("--version", "kata-affinityctl " KA_VERSION);
  app.require_subcommand(1);
  app.failure_message([](const CLI::App* failed, const CLI::Error& error) {
    return failed->get_name() + ": " + error.what() + " (see --help)\n";
  });
  Invocation invocation;
  app.add_flag("--json", invocation.json, "print one JSON document");
  declare_commands(app, invocation.command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Error& stop) {
    return unexpected(app.exit(stop, out, err) == 0 ? Exit::kDone : Exit::kWrong);
  }
  return invocation;
}

}  // namespace ka::cli
