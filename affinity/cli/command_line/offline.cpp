// SPDX-License-Identifier: Apache-2.0
// The commands that need no daemon; `plan --pod` alone asks it.
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "affinity/cli/command_line/declare.hpp"
#include "base/usage/usage.hpp"
#include "policy/allocate/allocate.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::cli {
namespace {

void declare_topology(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<TopologyOptions>();
  CLI::App& command = add_command(app, chosen, options, "topology", "show a machine");
  usage::add_topology(command, options->topology);
}

void declare_plan(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<PlanOptions>();
  CLI::App& command = add_command(app, chosen, options, "plan", "show what the daemon would do");
  usage::add_topology(command, options->topology);
  CLI::Option* scenario = add_value(command, "--scenario", "FILE", options->scenario,
                                    "what-if scenario, JSON (- for stdin)");
  CLI::Option* previous = add_value(command, "--previous", "FILE", options->previous,
                                    "an earlier output of plan --json");
  CLI::Option* pod = add_value(command, "--pod", "FILE", options->pod,
                               "managed mode: whether this pod (JSON) fits, and where");
  pod->excludes(command.get_option("--topology"))->excludes(scenario)->excludes(previous);
  CLI::Option* managed = command.add_flag("--managed", options->managed,
                                          "how managed mode would place the node's containers");
  managed->excludes(command.get_option("--topology"))
      ->excludes(scenario)
      ->excludes(previous)
      ->excludes(pod);
  command.callback([options, scenario, pod, managed, &chosen] {
    if (scenario->empty() && pod->empty() && managed->empty()) {
      throw CLI::RequiredError("--scenario, --pod or --managed");
    }
    chosen = *options;
  });
}

void declare_preferences(CLI::App& command, AllocateOptions& options) {
  command.add_option("--class", options.cpu_class, "CPU class on hybrid machines (default: any)")
      ->check(CLI::IsMember({"any", "fast", "efficient"}));
  command.add_flag("--prefer-isolated", options.prefer_isolated,
                   "CPUs under isolcpus and nohz_full first");
}

/// What --help leaves to --help-all.
void declare_details(CLI::App& command, AllocateOptions& options) {
  CLI::Option* const details[] = {
      add_value(command, "--group-size", "N", options.group_size,
                "distributed: split in multiples of this")
          ->check(CLI::Range(1, policy::kMaxIds))
          ->capture_default_str(),
      add_value(command, "--kubelet-version", "1.N", options.kubelet_version,
                "where versions differ (default: newest known)"),
      add_value(command, "--annotation", "KEY=VALUE", options.annotations,
                "kata-affinity.io/cpu-class or prefer-isolated"),
      add_value(command, "--container", "NAME", options.container, "for annotations KEY.NAME"),
      add_value(command, "--numa-affinity", "NODES", options.numa_affinity,
                "nodes whose CPUs come first"),
      add_value(command, "--held", "CPUS", options.held, "resize: CPUs that the container has"),
      add_value(command, "--promised", "CPUS", options.promised,
                "resize: CPUs that it was admitted with")};
  for (CLI::Option* option : details) usage::leave_to_help_all(*option);
}

void add_available(CLI::App& command, std::optional<std::string>& available) {
  add_value(command, "--available", "CPUS", available, "the shared pool (default: all online)");
}

template <typename Value>
void add_reserved(CLI::App& command, Value& reserved) {
  add_value(command, "--reserved", "CPUS", reserved, "CPUs that are never allocated");
}

void add_policy_options(CLI::App& command, std::vector<std::string>& options) {
  add_value(command, "--option", "NAME", options, "an option of kubelet's static policy");
}

CLI::Option* add_cpu_count(CLI::App& command, int& cpus) {
  return add_value(command, "--cpus", "N", cpus, "how many CPUs the container gets")
      ->check(CLI::Range(0, policy::kMaxIds));
}

std::vector<std::string> strategies() {
  std::vector<std::string> names;
  for (const policy::allocate::Pipeline& policy : policy::allocate::builtin_policies())
    names.push_back(policy.name);
  return names;
}

void declare_allocate(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<AllocateOptions>();
  CLI::App& command =
      add_command(app, chosen, options, "allocate", "show which CPUs a container would get");
  usage::add_help_all(command, "show all options and exit");
  CLI::Option* cpus = declare_request(command, *options);
  command.add_flag("--explain", options->explain, "also show steps and scores");
  const CLI::Option* batch = add_value(command, "--batch", "FILE", options->batch,
                                       "JSON lines, one request each (- for stdin)");
  command.callback([options, cpus, batch, &chosen] {
    if (cpus->empty() && batch->empty()) throw CLI::RequiredError("--cpus or --batch");
    chosen = *options;
  });
}

void declare_hints(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<HintsOptions>();
  CLI::App& command = add_command(app, chosen, options, "hints",
                                  "list the topology hints of kubelet's CPU manager");
  usage::add_topology(command, options->topology);
  add_available(command, options->available);
  add_reserved(command, options->reserved);
  add_value(command, "--reusable", "CPUS", options->reusable,
            "CPUs of the pod's finished init containers");
  add_policy_options(command, options->options);
  add_cpu_count(command, options->cpus)->required();
}

void declare_merge_hints(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<MergeHintsOptions>();
  CLI::App& command = add_command(app, chosen, options, "merge-hints",
                                  "merge topology hints, JSON from standard input");
  add_value(command, "--input", "FILE", options->input, "a file instead (- for stdin)")
      ->capture_default_str();
  command.add_flag("--batch", options->batch, "JSON lines: one problem each");
}

void declare_simulate(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<SimulateOptions>();
  CLI::App& command =
      add_command(app, chosen, options, "simulate", "simulate pods that come and go on a machine");
  usage::add_topology(command, options->topology);
  add_value(command, "--trace", "FILE", options->trace, "events, JSON lines (- for stdin)")
      ->required();
  std::vector<std::string> names = strategies();
  names.insert(names.begin(), "kubelet");
  command.add_option("--strategy", options->strategy, "kubelet's allocator, or one of ours")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  add_policy_options(command, options->options);
  add_reserved(command, options->reserved);
  command.add_option("--policy", options->policy, "topology manager policy")
      ->check(CLI::IsMember({"none", "best-effort", "restricted", "single-numa-node"}))
      ->capture_default_str();
  command.add_option("--scope", options->scope, "topology manager scope")
      ->check(CLI::IsMember({"container", "pod"}))
      ->capture_default_str();
}

}  // namespace

CLI::Option* declare_request(CLI::App& command, AllocateOptions& options) {
  usage::add_topology(command, options.topology);
  add_available(command, options.available);
  add_reserved(command, options.reserved);
  command.add_option("--strategy", options.strategy, "how CPUs are chosen")
      ->check(CLI::IsMember(strategies()))
      ->capture_default_str();
  add_policy_options(command, options.options);
  CLI::Option* cpus = add_cpu_count(command, options.cpus);
  declare_preferences(command, options);
  declare_details(command, options);
  return cpus;
}

void declare_offline(CLI::App& app, Command& chosen) {
  declare_topology(app, chosen);
  declare_plan(app, chosen);
  declare_allocate(app, chosen);
  declare_hints(app, chosen);
  declare_merge_hints(app, chosen);
  declare_simulate(app, chosen);
}

}  // namespace ka::cli
