// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/command_line/options.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>
#include <string>
#include <type_traits>
#include <variant>

#include "affinity/cli/command_line/examples.hpp"
#include "base/version/version.hpp"
#include "policy/allocate/allocate.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::cli {
namespace {

/// Where descriptions begin: options and commands fit before it, lines into 80 columns.
constexpr std::size_t kColumn = 26;
constexpr const char* kSandboxHelp = "id, pod, namespace/pod, or a unique prefix of one";
const std::map<std::string, std::int64_t> kDurations{
    {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
constexpr const char* kTopologyHelp = "host, synthetic:DESCRIPTION, or a file (hwloc XML, JSON)";

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
      add_command(app, chosen, options, "plan", "show what the daemon would do, without one");
  command.add_option("--topology", options->topology, kTopologyHelp)->capture_default_str();
  command.add_option("--scenario", options->scenario, "what-if scenario, JSON (- for stdin)")
      ->required();
  command.add_option("--previous", options->previous, "an earlier output of plan --json");
}

void declare_wishes(CLI::App& command, AllocateOptions& options) {
  command.add_option("--class", options.cpu_class, "CPU class on hybrid machines (any)")
      ->check(CLI::IsMember({"any", "fast", "efficient"}));
  command.add_flag("--prefer-isolated", options.prefer_isolated,
                   "CPUs under isolcpus and nohz_full first");
  command.add_option("--annotation", options.annotations,
                     "KEY=VALUE: kata-affinity.io/cpu-class, /prefer-isolated");
  command.add_option("--container", options.container, "container name, for KEY.NAME annotations");
  command.add_option("--numa-affinity", options.numa_affinity, "nodes whose CPUs come first");
  command.add_option("--held", options.held, "resize: the CPUs that the container has");
  command.add_option("--promised", options.promised, "resize: those it was admitted with");
}

std::vector<std::string> strategies() {
  std::vector<std::string> names;
  for (const policy::allocate::Pipeline& policy : policy::allocate::builtin_policies())
    names.push_back(policy.name);
  return names;
}

/// What a request for CPUs consists of; the number of CPUs comes back.
CLI::Option& declare_request(CLI::App& command, AllocateOptions& options) {
  command.add_option("--topology", options.topology, kTopologyHelp)->capture_default_str();
  command.add_option("--available", options.available, "the shared pool (all online CPUs)");
  command.add_option("--reserved", options.reserved, "CPUs that are never allocated");
  command.add_option("--strategy", options.strategy, "how CPUs are chosen")
      ->check(CLI::IsMember(strategies()))
      ->capture_default_str();
  command.add_option("--group-size", options.group_size, "distributed: split in multiples of this")
      ->option_text("N=1")
      ->check(CLI::Range(1, policy::kMaxIds))
      ->capture_default_str();
  command.add_option("--option", options.options, "an option of kubelet's static policy");
  command.add_option("--kubelet-version", options.kubelet_version,
                     "1.N, where versions differ (the newest known)");
  declare_wishes(command, options);
  return *command.add_option("--cpus", options.cpus, "how many CPUs the container gets")
              ->option_text("N")
              ->check(CLI::Range(0, policy::kMaxIds));
}

void declare_allocate(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<AllocateOptions>();
  CLI::App& command =
      add_command(app, chosen, options, "allocate", "show which CPUs a container would get");
  CLI::Option& cpus = declare_request(command, *options);
  command.add_flag("--explain", options->explain, "also show steps and scores");
  const CLI::Option* batch =
      command.add_option("--batch", options->batch, "JSON lines, one request each (- for stdin)");
  command.callback([options, &cpus, batch, &chosen] {
    if (cpus.empty() && batch->empty()) throw CLI::RequiredError("--cpus or --batch");
    chosen = *options;
  });
}

void declare_hints(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<HintsOptions>();
  CLI::App& command = add_command(app, chosen, options, "hints",
                                  "list the topology hints of kubelet's CPU manager");
  command.add_option("--topology", options->topology, kTopologyHelp)->capture_default_str();
  command.add_option("--available", options->available, "the shared pool (all online CPUs)");
  command.add_option("--reserved", options->reserved, "CPUs that are never allocated");
  command.add_option("--reusable", options->reusable, "CPUs of the pod's finished init containers");
  command.add_option("--option", options->options, "an option of kubelet's static policy");
  command.add_option("--cpus", options->cpus, "how many CPUs the container gets")
      ->check(CLI::Range(0, policy::kMaxIds))
      ->required();
}

void declare_merge_hints(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<MergeHintsOptions>();
  CLI::App& command = add_command(app, chosen, options, "merge-hints",
                                  "merge topology hints, JSON from standard input");
  command.add_option("--input", options->input, "a file instead (- for stdin)")
      ->capture_default_str();
  command.add_flag("--batch", options->batch, "JSON lines: one problem each");
}

void declare_simulate(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<SimulateOptions>();
  CLI::App& command =
      add_command(app, chosen, options, "simulate", "simulate pods that come and go on a machine");
  command.add_option("--topology", options->topology, kTopologyHelp)->capture_default_str();
  command.add_option("--trace", options->trace, "trace of events, JSON lines (- for stdin)")
      ->required();
  std::vector<std::string> names = strategies();
  names.insert(names.begin(), "kubelet");
  command.add_option("--strategy", options->strategy, "kubelet's allocator, or one of ours")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  command.add_option("--option", options->options, "an option of kubelet's static policy");
  command.add_option("--reserved", options->reserved, "CPUs that are never allocated");
  command.add_option("--policy", options->policy, "topology manager policy")
      ->check(CLI::IsMember({"none", "best-effort", "restricted", "single-numa-node"}))
      ->capture_default_str();
  command.add_option("--scope", options->scope, "topology manager scope")
      ->check(CLI::IsMember({"container", "pod"}))
      ->capture_default_str();
}

void declare_doctor(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<DoctorOptions>();
  CLI::App& command = add_command(app, chosen, options, "doctor",
                                  "check this node for anything that defeats isolation");
  command.add_option("--root", options->root, "root of the node's file system")
      ->capture_default_str();
}

void declare_selftest(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<SelftestOptions>();
  CLI::App& command = add_command(app, chosen, options, "selftest",
                                  "start pods on this node and prove that isolation works");
  CLI::Option* clean =
      command.add_flag("--clean", options->clean, "only remove what an interrupted self-test left");
  command.add_option("--handler", options->handler, "Kata handler of containerd (the first)")
      ->excludes(clean);
  command.add_option("--runtime-class", options->runtime_class, "its RuntimeClass (same name)")
      ->excludes(clean);
  command
      .add_option("--image", options->image,
                  "image on the node that runs until it is stopped (pause)")
      ->excludes(clean);
  command.add_option("--time-limit", options->time_limit, "duration, as in 90s, 10m (120s)")
      ->option_text("TIME")
      ->transform(CLI::AsNumberWithUnit(kDurations))
      ->check(CLI::PositiveNumber);
  command.add_option("--report", options->report, "also write the JSON document to this file");
}

void declare_setup(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<SetupOptions>();
  CLI::App& command = add_command(app, chosen, options, "setup",
                                  "show, or write, a drop-in beside Kata's configuration");
  command.add_flag("--yes", options->yes, "write the files");
  command.add_flag("--undo", options->undo, "remove what setup wrote");
  command.add_flag("--proxy", options->proxy, "also create a containerd runtime for the proxy");
  command.add_option("--mode", options->mode, "observe: plan only; follow: place threads")
      ->check(CLI::IsMember({"observe", "follow"}))
      ->capture_default_str();
  command.add_option("--kata-config", options->kata_configs, "configuration.toml elsewhere");
  command.add_option("--root", options->root, "root of the node's file system")
      ->capture_default_str();
}

void declare_making(CLI::App& command, GuestImageMaking& options) {
  command.add_option("-o,--output", options.made, "the new image")->required();
  command.add_option("--agent", options.agent, "the agent program (default: the installed one)");
  command.add_option("--kata-config", options.kata_config,
                     "write the drop-in beside this configuration.toml");
}

void declare_guest_image(CLI::App& app, Command& chosen) {
  CLI::App& group = *app.add_subcommand("guest-image", "put the agent into images for guests");
  group.require_subcommand(1)->fallthrough();
  const auto check = std::make_shared<GuestImageCheckOptions>();
  add_command(group, chosen, check, "check", "show which agent is in an image")
      .add_option("IMAGE", check->image, "an initrd or a disk image")
      ->required();
  const auto add = std::make_shared<GuestImageAddOptions>();
  CLI::App& adding =
      add_command(group, chosen, add, "add", "copy an initrd or disk image and add the agent");
  adding.add_option("IMAGE", add->image, "initrd or disk image; not modified")->required();
  declare_making(adding, *add);
  const auto extension = std::make_shared<GuestImageExtensionOptions>();
  CLI::App& extending =
      add_command(group, chosen, extension, "extension", "create an extension image for Kata 4");
  declare_making(extending, *extension);
  extending.add_flag("--measured", extension->measured, "protect it with dm-verity");
}

/// An online command about one sandbox, or about all where its id may be left out.
template <typename Options>
CLI::App& add_about_sandbox(CLI::App& app, Command& chosen, const std::shared_ptr<Options>& options,
                            const char* name, const char* summary, bool required) {
  CLI::App& command = add_command(app, chosen, options, name, summary);
  command.add_option("SANDBOX", options->sandbox, kSandboxHelp)->required(required);
  return command;
}

/// The help of `allocate` lists these options.
void hide_request(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (name != "SANDBOX" && name != "--cpus" && option != command.get_help_ptr())
      option->group("");
  }
}

/// Of a sandbox, or, with a number of CPUs, of what `allocate` would choose.
void declare_explain(CLI::App& app, Command& chosen) {
  const auto sandbox = std::make_shared<ExplainOptions>();
  const auto request = std::make_shared<AllocateOptions>();
  request->explain = true;
  CLI::App& command = add_about_sandbox(app, chosen, sandbox, "explain",
                                        "show why threads or CPUs are placed as they are", false);
  CLI::Option& cpus = declare_request(command, *request);
  hide_request(command);
  cpus.description("explain a choice of CPUs; takes the options of allocate");
  cpus.excludes(command.get_option("SANDBOX"));
  command.get_option("SANDBOX")->option_text("TEXT");
  command.callback([sandbox, request, &cpus, &chosen] {
    if (cpus.empty() && sandbox->sandbox.empty()) throw CLI::RequiredError("SANDBOX or --cpus");
    chosen = cpus.empty() ? Command(*sandbox) : Command(*request);
  });
}

void declare_views(CLI::App& app, Command& chosen) {
  const auto status = std::make_shared<StatusOptions>();
  CLI::App& showing =
      add_about_sandbox(app, chosen, status, "status", "show sandboxes, threads and CPUs", false);
  showing.add_flag("--watch", status->watch, "refresh every second");
  showing.add_flag("--legend", status->legend, "also explain the columns");
  add_command(app, chosen, std::make_shared<NamesOptions>(), "names", "for shell completion")
      .group("");
  declare_explain(app, chosen);
  const auto map = std::make_shared<MapOptions>();
  add_command(app, chosen, map, "map", "show who owns which CPU")
      .add_option("--svg", map->svg, "write an SVG picture to this file (- for stdout)");
  const auto verify = std::make_shared<VerifyOptions>();
  add_command(app, chosen, verify, "verify", "re-read the kernel and check the invariants")
      .add_flag("--strict", verify->strict, "also exit with 1 when degraded");
  add_command(app, chosen, std::make_shared<EventsOptions>(), "events", "stream events");
}

void declare_actions(CLI::App& app, Command& chosen) {
  add_about_sandbox(app, chosen, std::make_shared<ReconcileOptions>(), "reconcile",
                    "plan and place again: one sandbox, or all", false);
  add_about_sandbox(app, chosen, std::make_shared<ReleaseOptions>(), "release",
                    "restore threads' masks: one sandbox, or all", false);
}

void declare_sandbox(CLI::App& app, Command& chosen) {
  CLI::App& group = *app.add_subcommand("sandbox", "add or remove a sandbox by hand");
  group.require_subcommand(1)->fallthrough();
  const auto options = std::make_shared<SandboxAddOptions>();
  CLI::App& add =
      add_command(group, chosen, options, "add", "add a sandbox that no source reports");
  add.add_option("ID", options->sandbox, "id of the new sandbox")->required();
  CLI::Option_group& vm = *add.add_option_group("the VM");
  vm.require_option(1);
  vm.add_option("--vmm-pid", options->vmm_pid, "pid of the VMM");
  vm.add_option("--domain", options->domain, "libvirt domain of the VM");
  add.add_option("--qmp", options->qmp, "QMP socket for kata-affinity's own use");
  add.add_option("--agent", options->agent, "address of the guest agent");
  add.add_option("--cgroup", options->cgroup, "cgroup of the sandbox, below the cgroup mount");
  add.add_option("--pod-uid", options->pod_uid, "the pod's uid");
  add.add_option("--pod-name", options->pod_name, "NAMESPACE/NAME");
  add.add_option("--handler", options->handler, "runtime handler");
  add_about_sandbox(group, chosen, std::make_shared<SandboxRemoveOptions>(), "rm",
                    "forget a sandbox and release its threads", true);
}

void declare_container(CLI::App& app, Command& chosen) {
  CLI::App& group = *app.add_subcommand("container", "update or remove a container by hand");
  group.require_subcommand(1)->fallthrough();
  const auto options = std::make_shared<ContainerUpdateOptions>();
  CLI::App& update = add_command(group, chosen, options, "update", "set a container's whole spec");
  update.add_option("SANDBOX", options->sandbox, kSandboxHelp)->required();
  update.add_option("ID", options->container, "container id")->required();
  update.add_option("--name", options->name, "name in the pod");
  update.add_option("--cpus", options->cpus, "cpuset, as in 0-3,8");
  update.add_option("--mems", options->mems, "NUMA nodes");
  update.add_option("--quota", options->quota, "CFS quota per period, in microseconds");
  update.add_option("--period", options->period, "CFS period, in microseconds");
  CLI::Option* exclusive = update.add_flag_callback(
      "--exclusive", [options] { options->exclusive = true; },
      "owns its CPUs (default: if its quota equals them)");
  update
      .add_flag_callback(
          "--shared", [options] { options->exclusive = false; }, "shares its CPUs")
      ->excludes(exclusive);
  const auto gone = std::make_shared<ContainerRemoveOptions>();
  CLI::App& remove = add_command(group, chosen, gone, "rm", "forget a container");
  remove.add_option("SANDBOX", gone->sandbox, kSandboxHelp)->required();
  remove.add_option("CONTAINER", gone->container, "id, name, or a unique prefix of one")
      ->required();
}

/// `one` names a thread of the role; empty: the role is placed as a whole.
void declare_pin(CLI::App& app, Command& chosen, const char* name, const char* role,
                 const char* one) {
  const auto options = std::make_shared<PinOptions>();
  options->role = role;
  const std::string summary = std::string("show where ") + role + " threads run, or pin them";
  CLI::App& command = add_command(app, chosen, options, name, summary.c_str());
  command.add_option("SANDBOX", options->sandbox, kSandboxHelp)->required();
  CLI::Option* thread = nullptr;
  if (*one != 0) thread = command.add_option(one, options->thread, "which one");
  CLI::Option* cpus = command.add_option("CPUS", options->cpus, "cpuset, as in 0-3,8");
  CLI::Option* remove = command.add_flag("--remove", options->remove, "return to the plan");
  remove->excludes(cpus);
  command.add_option("--for", options->lasts_for, "duration, as in 90s, 10m, 2h (default: no end)")
      ->transform(CLI::AsNumberWithUnit(kDurations))
      ->check(CLI::PositiveNumber)
      ->needs(cpus);
  command.add_flag("--force", options->force, "even if it takes a CPU from a dedicated vCPU")
      ->needs(cpus);
  if (thread != nullptr) remove->needs(thread);
}

void declare_pins(CLI::App& app, Command& chosen) {
  declare_pin(app, chosen, "vcpupin", "vcpu", "VCPU");
  declare_pin(app, chosen, "emulatorpin", "emulator", "");
  declare_pin(app, chosen, "iothreadpin", "iothread", "IOTHREAD");
  declare_pin(app, chosen, "vhostpin", "vhost", "");
}

void declare_commands(CLI::App& app, Command& chosen) {
  declare_views(app, chosen);
  declare_actions(app, chosen);
  declare_pins(app, chosen);
  declare_sandbox(app, chosen);
  declare_container(app, chosen);
  declare_doctor(app, chosen);
  declare_selftest(app, chosen);
  declare_setup(app, chosen);
  declare_guest_image(app, chosen);
  declare_topology(app, chosen);
  declare_plan(app, chosen);
  declare_allocate(app, chosen);
  declare_hints(app, chosen);
  declare_merge_hints(app, chosen);
  declare_simulate(app, chosen);
}

/// Each command's own examples at the end of its help.
void add_examples(CLI::App& app, const std::string& path) {
  app.footer(examples_of(path));
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    add_examples(*command, path.empty() ? command->get_name() : path + ' ' + command->get_name());
  }
}

/// A command that needs no daemon needs no socket either.
void use_socket(Command& command, const std::string& socket) {
  std::visit(
      [&socket]<typename Options>(Options& options) {
        if constexpr (std::is_base_of_v<Online, Options>) options.socket = socket;
      },
      command);
}

/// What CLI11 says, but for a command that does not exist: that it names.
std::string input_error(const CLI::App* app, const CLI::Error& error) {
  const auto left = app->remaining();
  const bool unknown = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError) &&
                       !left.empty() && !left.front().starts_with('-');
  const std::string what = unknown ? "unknown command \"" + left.front() + '"' : error.what();
  return app->get_name() + ": " + what + " (see --help)\n";
}

}  // namespace

Expected<Invocation, Exit> parse(int argc, const char* const* argv, std::ostream& out,
                                 std::ostream& err) {
  CLI::App app("Show and control which CPUs the threads of VM sandboxes run on.",
               "kata-affinityctl");
  app.set_version_flag("--version", std::string("kata-affinityctl ") + version::text());
  app.require_subcommand(1);
  app.get_formatter()->column_width(kColumn);
  app.failure_message(input_error);
  Invocation invocation;
  app.add_flag("--json", invocation.json, "print one JSON document");
  std::string socket;
  app.add_option("--socket", socket, "the daemon's socket")->default_str(Online{}.socket);
  declare_commands(app, invocation.command);
  add_examples(app, "");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Error& stop) {
    return unexpected(app.exit(stop, out, err) == 0 ? Exit::kDone : Exit::kWrong);
  }
  if (!socket.empty()) use_socket(invocation.command, socket);
  return invocation;
}

}  // namespace ka::cli
