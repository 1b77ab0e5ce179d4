// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/kubectl/plugin_options.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>

#include "base/usage/usage.hpp"
#include "base/version/version.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::cli::kubectl {
namespace {

constexpr const char* kTargetHelp = "a pod or a node; pod/NAME, node/NAME where both exist";

constexpr const char* kExamples =
    "Examples:\n"
    "  kubectl affinity status --all               one line for each node\n"
    "  kubectl affinity status cart-0 -n shop      where its threads run\n"
    "  kubectl affinity explain worker-3 --cpu 4   whose CPU 4 is";

constexpr const char* kNoiseNote =
    "These are the daemon's counters. `kata-affinityctl noise` on the node names the\n"
    "tasks and interrupts, and records for a time of your choice (--for).\n\n";

CLI::App& add_command(CLI::App& app, PluginOptions& options, const char* name, const char* summary,
                      const char* example) {
  CLI::App& command = *app.add_subcommand(name, summary);
  command.fallthrough();
  command.add_option("TARGET", options.target, kTargetHelp);
  command.footer(std::string("Examples:\n  kubectl affinity ") + example);
  command.callback([&options, name] { options.command = name; });
  return command;
}

void add_text(CLI::App& app, const char* name, const char* type, std::string& value,
              const std::string& meaning) {
  app.add_option(name, value, meaning)->type_name(type);
}

void declare(CLI::App& app, PluginOptions& options) {
  CLI::App& status = add_command(app, options, "status", "show sandboxes, threads and CPUs",
                                 "status cart-0 -n shop");
  CLI::App& verify = add_command(app, options, "verify", "check the invariants on a node",
                                 "verify --all --strict");
  for (CLI::App* command : {&status, &verify}) {
    command->add_flag("--all", options.all, "every node: one line each")
        ->excludes(command->get_option("TARGET"));
  }
  verify.add_flag("--strict", options.strict, "also exit with 1 when degraded");
  add_command(app, options, "explain", "show why threads of a pod run where they do",
              "explain cart-0 -n shop")
      .add_option("--cpu", options.cpu, "instead: whose CPU N of the node is")
      ->type_name("N")
      ->check(CLI::Range(0, policy::kMaxIds - 1));
  add_command(app, options, "map", "show who owns which CPU of a node", "map worker-3");
  CLI::App& noise =
      add_command(app, options, "noise", "show how often dedicated vCPUs were interrupted",
                  "noise cart-0 -n shop");
  noise.footer(kNoiseNote + noise.get_footer());
  app.add_flag("--json", options.json, "print one JSON document");
  add_text(app, "-n,--namespace", "NAME", options.pod_namespace,
           "namespace of the pod (default: kubectl's)");
  add_text(app, "--reader-namespace", "NAME", options.reader_namespace,
           "namespace of the chart (default: " + PluginOptions{}.reader_namespace + ")");
  add_text(app, "--kubeconfig", "FILE", options.kubeconfig, "for kubectl");
  add_text(app, "--context", "NAME", options.context, "for kubectl");
}

void check(const PluginOptions& options) {
  if (!options.all && options.target.empty()) {
    const bool has_all = options.command == "status" || options.command == "verify";
    throw CLI::RequiredError(has_all ? "TARGET or --all" : "TARGET");
  }
}

}  // namespace

Expected<PluginOptions, Exit> parse_plugin(int argc, const char* const* argv, std::ostream& out,
                                           std::ostream& err) {
  CLI::App app("Show which CPUs the threads of VM sandboxes run on, over the nodes of a cluster.",
               "kubectl affinity");
  usage::apply_style(app, std::string("kubectl-affinity ") + version::text());
  app.require_subcommand(1);
  app.footer(kExamples);
  PluginOptions options;
  declare(app, options);
  try {
    app.parse(argc, argv);
    check(options);
  } catch (const CLI::Error& stop) {
    return unexpected(app.exit(stop, out, err) == 0 ? Exit::kDone : Exit::kWrong);
  }
  return options;
}

}  // namespace ka::cli::kubectl
