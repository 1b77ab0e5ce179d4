// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/command_line/options.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <variant>

#include "affinity/cli/command_line/declare.hpp"
#include "affinity/cli/command_line/examples.hpp"
#include "base/usage/usage.hpp"
#include "base/version/version.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::cli {
namespace {

void declare_doctor(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<DoctorOptions>();
  CLI::App& command = add_command(app, chosen, options, "doctor",
                                  "check this node for anything that defeats isolation");
  add_value(command, "--root", "DIR", options->root, kRootHelp)->capture_default_str();
}

void declare_selftest(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<SelftestOptions>();
  CLI::App& command = add_command(app, chosen, options, "selftest",
                                  "start two pods and check that they are isolated");
  CLI::Option* clean =
      command.add_flag("--clean", options->clean, "only remove what an interrupted run left");
  add_value(command, "--handler", "NAME", options->handler,
            "Kata handler in containerd (default: the first)")
      ->excludes(clean);
  add_value(command, "--runtime-class", "NAME", options->runtime_class,
            "its RuntimeClass (default: the handler's name)")
      ->excludes(clean);
  add_value(command, "--image", "NAME", options->image, "long-running image (default: pause)")
      ->excludes(clean);
  add_value(command, "--runtime-endpoint", "SOCKET", options->runtime_endpoint,
            "CRI socket, without kubelet (default: containerd's)");
  command
      .add_flag("--demo", options->demo, "also measure waiting times, released and placed (20 s)")
      ->excludes(clean);
  usage::add_duration(command, "--time-limit", options->time_limit,
                      "for the check, and again for removal (default: 120s)");
  add_value(command, "--report", "FILE", options->report, "also write the JSON document here");
}

void declare_setup(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<SetupOptions>();
  CLI::App& command = add_command(app, chosen, options, "setup",
                                  "show, or write, a drop-in beside Kata's configuration");
  command.add_flag("--yes", options->yes, "write the files");
  command.add_flag("--undo", options->undo, "remove what setup wrote");
  command.add_flag("--proxy", options->proxy, "also create a containerd runtime for the proxy");
  command
      .add_option("--profile", options->profile,
                  "which profile (default: the current one, or isolated)")
      ->check(CLI::IsMember({"watch", "isolated", "default"}));
  add_value(command, "--handler", "NAME", options->handlers,
            "only for this runtime handler (default: all of Kata's)");
  add_value(command, "--kata-config", "FILE", options->kata_configs,
            "configuration.toml at another path");
  add_value(command, "--settings", "FILE", options->settings,
            "also write these settings; they override the profile's");
  add_value(command, "--root", "DIR", options->root, kRootHelp)->capture_default_str();
}

void declare_making(CLI::App& command, GuestImageMaking& options) {
  add_value(command, "-o,--output", "FILE", options.made, "the new image")->required();
  add_value(command, "--agent", "FILE", options.agent,
            "the agent program (default: the installed one)");
  add_value(command, "--kata-config", "FILE", options.kata_config,
            "write the drop-in beside this configuration.toml");
}

void declare_guest_image(CLI::App& app, Command& chosen) {
  CLI::App& group =
      *app.add_subcommand("guest-image", "check guest images, and add the agent to them");
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

/// The help of `allocate` lists these options.
void hide_request(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (name != "SANDBOX" && name != "--cpus" && option != command.get_help_ptr())
      option->group("");
  }
}

/// Of a sandbox, of a CPU, or, with a number of CPUs, of what `allocate` would choose.
void declare_explain(CLI::App& app, Command& chosen) {
  const auto sandbox = std::make_shared<ExplainOptions>();
  const auto request = std::make_shared<AllocateOptions>();
  request->explain = true;
  CLI::App& command =
      add_about_sandbox(app, chosen, sandbox, "explain",
                        "show why threads run where they do, or who owns a CPU", false);
  CLI::Option* cpus = declare_request(command, *request);
  hide_request(command);
  cpus->description("instead of SANDBOX: explain a choice, see allocate");
  cpus->excludes(command.get_option("SANDBOX"));
  command.add_option("--cpu", sandbox->cpu, "instead of SANDBOX: who owns CPU N, by which source")
      ->type_name("N")
      ->check(CLI::Range(0, policy::kMaxIds - 1))
      ->excludes(command.get_option("SANDBOX"))
      ->excludes(cpus);
  command.callback([sandbox, request, cpus, &chosen] {
    if (cpus->empty() && !sandbox->cpu && sandbox->sandbox.empty())
      throw CLI::RequiredError("SANDBOX, --cpu or --cpus");
    chosen = cpus->empty() ? Command(*sandbox) : Command(*request);
  });
}

void declare_views(CLI::App& app, Command& chosen) {
  const auto status = std::make_shared<StatusOptions>();
  CLI::App& showing =
      add_about_sandbox(app, chosen, status, "status", "show sandboxes, threads and CPUs", false);
  showing.add_flag("--watch", status->watch, "refresh every second");
  showing.add_flag("--legend", status->legend, "also explain the columns");
  add_about_sandbox(app, chosen, std::make_shared<NamesOptions>(), "names", "for shell completion",
                    false)
      .group("");
  declare_explain(app, chosen);
  const auto map = std::make_shared<MapOptions>();
  add_command(app, chosen, map, "map", "show who owns which CPU")
      .add_option("--svg", map->svg, "write an SVG picture (- for stdout)")
      ->type_name("FILE");
  const auto report = std::make_shared<ReportOptions>();
  add_value(add_command(app, chosen, report, "report", "write a page about the node"), "--html",
            "FILE", report->html, "the HTML page (- for stdout)")
      ->required();
  const auto verify = std::make_shared<VerifyOptions>();
  add_command(app, chosen, verify, "verify", "re-read the kernel and check the invariants")
      .add_flag("--strict", verify->strict, "also exit with 1 when degraded");
  const auto measure = std::make_shared<MeasureOptions>();
  CLI::App& in_guest = add_about_sandbox(app, chosen, measure, "measure",
                                         "measure wake-up latencies inside a VM", true);
  usage::add_duration(in_guest, "--for", measure->seconds, "up to 50s (default: 10s)");
  add_value(in_guest, "--vcpus", "LIST", measure->vcpus,
            "which vCPUs (default: the dedicated ones)");
  const auto noise = std::make_shared<NoiseOptions>();
  CLI::App& on_cpus = add_about_sandbox(app, chosen, noise, "noise",
                                        "record what else runs on exclusive CPUs", false);
  usage::add_duration(on_cpus, "--for", noise->seconds, "up to 10m (default: 10s)");
  add_value(on_cpus, "--cpus", "LIST", noise->cpus, "these CPUs, owned or not")
      ->excludes(on_cpus.get_option("SANDBOX"));
  on_cpus
      .add_flag("--counters", noise->counters, "record nothing: show what the daemon has counted")
      ->excludes(on_cpus.get_option("--for"), on_cpus.get_option("--cpus"));
  add_command(app, chosen, std::make_shared<EventsOptions>(), "events", "stream events");
}

void declare_actions(CLI::App& app, Command& chosen) {
  add_about_sandbox(app, chosen, std::make_shared<ReconcileOptions>(), "reconcile",
                    "plan and place again: one sandbox, or all", false);
  add_about_sandbox(app, chosen, std::make_shared<ReleaseOptions>(), "release",
                    "restore threads' masks: one sandbox, or all", false);
}

/// Where kata-affinity gives containers their CPUs.
void declare_managed(CLI::App& app, Command& chosen) {
  add_command(app, chosen, std::make_shared<PoolsOptions>(), "pools",
              "show the pools of managed mode, and who has what");
  const auto options = std::make_shared<ClassOptions>();
  CLI::App& command =
      add_command(app, chosen, options, "class", "give a pod or container another class");
  command.add_option("POD", options->target, "id, pod or namespace/pod; with /NAME: one container")
      ->required();
  command.add_option("CLASS", options->use, "none (the shared pool), exclusive or share")
      ->required()
      ->check(CLI::IsMember({"none", "exclusive", "share"}));
  add_command(app, chosen, std::make_shared<NodeReportOptions>(), "node-report",
              "show the pools and who has what, and check both");
  const auto discover = std::make_shared<DiscoverOptions>();
  CLI::App& features = add_command(app, chosen, discover, "discover",
                                   "write the node's features for Node Feature Discovery");
  add_value(features, "--output", "FILE", discover->output,
            "a file, replaced atomically (default: stdout)");
  usage::add_duration(features, "--valid-for", discover->valid_for,
                      "NFD drops them after 90s, 10m, 2h (default: never)");
}

void declare_sandbox(CLI::App& app, Command& chosen) {
  CLI::App& group = *app.add_subcommand("sandbox", "add or remove a sandbox manually");
  group.require_subcommand(1)->fallthrough();
  const auto options = std::make_shared<SandboxAddOptions>();
  CLI::App& add =
      add_command(group, chosen, options, "add", "add a sandbox that no source reports");
  add.add_option("ID", options->sandbox, "id of the new sandbox")->required();
  CLI::Option* pid = add_value(add, "--vmm-pid", "PID", options->vmm_pid, "process of the VMM")
                         ->check(CLI::Range(1, std::numeric_limits<int>::max()));
  CLI::Option* domain =
      add_value(add, "--domain", "NAME", options->domain, "libvirt domain, instead of --vmm-pid")
          ->excludes(pid);
  add_value(add, "--qmp", "PATH", options->qmp, "QMP socket for kata-affinity's own use");
  add_value(add, "--agent", "ADDRESS", options->agent, "address of the guest agent");
  add_value(add, "--cgroup", "PATH", options->cgroup, "its cgroup, below the cgroup mount");
  add_value(add, "--pod-uid", "UID", options->pod_uid, "the pod's uid");
  add_value(add, "--pod-name", "NAME", options->pod_name, "NAMESPACE/NAME");
  add_value(add, "--handler", "NAME", options->handler, "runtime handler");
  add.callback([options, pid, domain, &chosen] {
    if (pid->empty() && domain->empty()) throw CLI::RequiredError("--vmm-pid or --domain");
    chosen = *options;
  });
  add_about_sandbox(group, chosen, std::make_shared<SandboxRemoveOptions>(), "rm",
                    "forget a sandbox and release its threads", true);
}

void declare_container(CLI::App& app, Command& chosen) {
  CLI::App& group = *app.add_subcommand("container", "update or remove a container manually");
  group.require_subcommand(1)->fallthrough();
  const auto options = std::make_shared<ContainerUpdateOptions>();
  CLI::App& update = add_command(group, chosen, options, "update", "set a container's whole spec");
  update.add_option("SANDBOX", options->sandbox, kSandboxHelp)->required();
  update.add_option("ID", options->container, "container id")->required();
  add_value(update, "--name", "NAME", options->name, "name in the pod");
  add_value(update, "--cpus", "CPUS", options->cpus, kCpusHelp);
  add_value(update, "--mems", "NODES", options->mems, "NUMA nodes");
  add_value(update, "--quota", "N", options->quota, "CFS quota per period, in microseconds");
  add_value(update, "--period", "N", options->period, "CFS period, in microseconds");
  CLI::Option* exclusive = update.add_flag_callback(
      "--exclusive", [options] { options->exclusive = true; },
      "it owns its CPUs (default: if its quota equals them)");
  update
      .add_flag_callback(
          "--shared", [options] { options->exclusive = false; }, "it shares its CPUs")
      ->excludes(exclusive);
  const auto gone = std::make_shared<ContainerRemoveOptions>();
  CLI::App& remove = add_command(group, chosen, gone, "rm", "forget a container");
  remove.add_option("SANDBOX", gone->sandbox, kSandboxHelp)->required();
  remove.add_option("CONTAINER", gone->container, "id, name, or a unique prefix of one")
      ->required();
}

/// `one` names a thread of the role; empty: the role is placed as a whole.
void declare_pin(CLI::App& app, Command& chosen, const char* name, const char* role,
                 const char* threads, const char* one) {
  const auto options = std::make_shared<PinOptions>();
  options->role = role;
  const std::string summary = std::string("show where ") + threads + " run, or pin them";
  CLI::App& command = add_command(app, chosen, options, name, summary.c_str());
  command.add_option("SANDBOX", options->sandbox, kSandboxHelp)->required();
  CLI::Option* thread = nullptr;
  if (*one != 0) thread = command.add_option(one, options->thread, "which one (default: all)");
  CLI::Option* cpus = command.add_option("CPUS", options->cpus, kCpusHelp);
  CLI::Option* remove = command.add_flag("--remove", options->remove, "return to the plan");
  remove->excludes(cpus);
  usage::add_duration(command, "--for", options->lasts_for,
                      "end the pin after 90s, 10m, 2h (default: never)")
      ->needs(cpus);
  command.add_flag("--force", options->force, "even if it takes a CPU from a dedicated vCPU")
      ->needs(cpus);
  if (thread != nullptr) remove->needs(thread);
}

void declare_pins(CLI::App& app, Command& chosen) {
  declare_pin(app, chosen, "vcpupin", "vcpu", "vCPUs", "VCPU");
  declare_pin(app, chosen, "emulatorpin", "emulator", "emulator threads", "");
  declare_pin(app, chosen, "iothreadpin", "iothread", "iothreads", "IOTHREAD");
  declare_pin(app, chosen, "vhostpin", "vhost", "vhost workers", "");
}

using Declare = void (*)(CLI::App&, Command&);

/// The groups of --help; a hidden command stays hidden.
void declare_group(CLI::App& app, Command& chosen, const char* group,
                   std::initializer_list<Declare> declarations) {
  for (const Declare declare : declarations) declare(app, chosen);
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_group() == "Subcommands") usage::set_group(*command, group);
  }
}

void declare_commands(CLI::App& app, Command& chosen) {
  declare_group(app, chosen, "Setup",
                {declare_doctor, declare_setup, declare_selftest, declare_guest_image});
  declare_group(app, chosen, "Inspection", {declare_views});
  declare_group(app, chosen, "Placement", {declare_actions, declare_pins});
  declare_group(app, chosen, "Managed", {declare_managed});
  declare_group(app, chosen, "Registration", {declare_sandbox, declare_container});
  declare_group(app, chosen, "Offline", {declare_offline});
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

}  // namespace

Expected<Invocation, Exit> parse(int argc, const char* const* argv, std::ostream& out,
                                 std::ostream& err) {
  CLI::App app("Show and control which CPUs the threads of VM sandboxes run on.",
               "kata-affinityctl");
  usage::apply_style(app, std::string("kata-affinityctl ") + version::text());
  app.require_subcommand(1);
  Invocation invocation;
  declare_commands(app, invocation.command);
  usage::add_help_all(app, "show all commands with their summaries and exit");
  app.add_flag("--json", invocation.json, "print one JSON document");
  std::string socket;
  add_value(app, "--socket", "PATH", socket, "daemon's socket (default: " + Online{}.socket + ")");
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
