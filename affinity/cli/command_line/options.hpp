// SPDX-License-Identifier: Apache-2.0
// The command line, parsed. To add a command: a struct of its options here and in Command, its
// declaration in options.cpp (the one place that includes CLI11), and its run() in the directory of
// its kind, declared in that directory's header, which main.cpp includes.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "affinity/cli/terminal/output.hpp"
#include "policy/facts/expected.hpp"

namespace ka::cli {

/// `topology`: shows a machine.
struct TopologyOptions {
  std::string topology = "host";
};

/// `allocate`: which CPUs a container would get; `explain --cpus N`: and why.
struct AllocateOptions {
  std::string topology = "host";
  std::optional<std::string> available;  ///< absent: all online CPUs
  int cpus = 0;
  std::string strategy = "packed";
  int group_size = 1;
  std::vector<std::string> options;
  std::optional<std::string> reserved;
  std::optional<std::string> numa_affinity;
  std::vector<std::string> annotations;  ///< KEY=VALUE, the pod's
  std::string container;                 ///< its name, for annotations of one container
  std::optional<std::string> cpu_class;  ///< absent: by the annotations
  bool prefer_isolated = false;
  std::optional<std::string> held;
  std::optional<std::string> promised;
  bool explain = false;
  std::string kubelet_version;       ///< "1.36"; empty: the newest that is known
  std::optional<std::string> batch;  ///< a file of JSON lines, - for standard input
};

/// `hints`: the CPU manager's own topology hints.
struct HintsOptions {
  std::string topology = "host";
  std::optional<std::string> available;  ///< absent: all online CPUs
  std::optional<std::string> reserved;
  std::optional<std::string> reusable;
  std::vector<std::string> options;
  int cpus = 0;
};

/// `merge-hints`: on which NUMA nodes topology hints agree.
struct MergeHintsOptions {
  std::string input = "-";
  bool batch = false;  ///< a problem a line
};

/// `simulate`: allocation on a machine while pods start and end.
struct SimulateOptions {
  std::string topology = "host";
  std::string trace;  ///< JSON lines, - for standard input
  std::string strategy = "kubelet";
  std::vector<std::string> options;
  std::string reserved;
  std::string policy = "none";
  std::string scope = "container";
};

/// What every command has that needs the daemon.
struct Online {
  std::string socket = "/run/kata-affinity/api.sock";
};

/// `plan`: what a daemon would do, without one; with `pod`: what this one would do with a pod.
struct PlanOptions : Online {
  std::string topology = "host";
  std::string scenario;  ///< a file, or "-"
  std::string previous;  ///< an earlier output; empty: none
  std::string pod;       ///< a manifest: a file, or "-"; empty: none
  bool managed = false;  ///< what mode = "managed" would make of the node
};

/// `status`: planned and actual CPUs of the threads of one sandbox, or all.
struct StatusOptions : Online {
  std::string sandbox;  ///< empty: all
  bool watch = false;   ///< again every second, until it is interrupted
  bool legend = false;  ///< also how to read the table
};

/// `names`: what shells offer to complete a sandbox's or a container's name; not in --help.
struct NamesOptions : Online {
  std::string sandbox;  ///< whose containers; empty: the sandboxes
};

/// `explain`: why threads are placed as they are.
struct ExplainOptions : Online {
  std::string sandbox;
  std::optional<int> cpu;  ///< in place of a sandbox: whose that CPU is
};

/// `map`: the node.
struct MapOptions : Online {
  std::string svg;  ///< a file for the picture; empty: drawn in the terminal
};

/// `pools`: mode = "managed": the pools, and who has which CPUs.
struct PoolsOptions : Online {};

/// `class`: mode = "managed": another class for a pod or one of its containers.
struct ClassOptions : Online {
  std::string target;  ///< POD[/CONTAINER]
  std::string use;     ///< "none", "exclusive", "share"
};

/// `node-report`: mode = "managed": pools, who has what, and checks.
struct NodeReportOptions : Online {};

/// `discover`: the node's features for Node Feature Discovery.
struct DiscoverOptions : Online {
  std::string output;          ///< a file; empty: standard output
  std::int64_t valid_for = 0;  ///< seconds; 0: until it is written again
};

/// `report`: the node as a page.
struct ReportOptions : Online {
  std::string html;  ///< a file, or "-"
};

/// `verify`: re-reads the kernel and checks the invariants.
struct VerifyOptions : Online {
  bool strict = false;  ///< degraded is a failure as well
};

/// `measure`: wake-up latencies inside the guest.
struct MeasureOptions : Online {
  std::string sandbox;
  std::int64_t seconds = 10;
  std::string vcpus;  ///< a list of indices; empty: the dedicated ones, else all
};

/// `noise`: what runs on exclusive CPUs besides what they are for.
struct NoiseOptions : Online {
  std::string sandbox;  ///< whose CPUs; empty: those of all
  std::string cpus;     ///< a list in place of that; empty: by owner
  std::int64_t seconds = 10;
  bool counters = false;  ///< show what the daemon has counted, record nothing
};

/// `reconcile`: run the line again.
struct ReconcileOptions : Online {
  std::string sandbox;  ///< empty: all
};

/// `release`: restore threads' masks.
struct ReleaseOptions : Online {
  std::string sandbox;  ///< empty: all
};

/// `sandbox add`: a sandbox that no other source reports.
struct SandboxAddOptions : Online {
  std::string sandbox;
  int vmm_pid = 0;
  std::string domain, qmp, agent, cgroup, pod_uid, pod_name, handler;
};

/// `sandbox rm`
struct SandboxRemoveOptions : Online {
  std::string sandbox;
};

/// `container update`: the UpdateContainer spec, manually.
struct ContainerUpdateOptions : Online {
  std::string sandbox, container;
  std::string name, cpus, mems;
  std::int64_t quota = 0, period = 0;
  std::optional<bool> exclusive;  ///< absent: by the quota
};

/// `container rm`
struct ContainerRemoveOptions : Online {
  std::string sandbox, container;
};

/// `vcpupin`, `emulatorpin`, `iothreadpin`, `vhostpin`: where threads of one role may run; with
/// CPUs: pins them, until the pin is removed.
struct PinOptions : Online {
  std::string sandbox;
  std::string role;
  std::string thread;  ///< a vCPU's index, an iothread's id; empty: all of the role
  std::string cpus;    ///< empty: only show
  bool remove = false;
  bool force = false;          ///< also where it takes CPUs from exclusive containers
  std::int64_t lasts_for = 0;  ///< seconds; 0: until it is removed
};

/// `events`: a stream of events.
struct EventsOptions : Online {};

/// `doctor`: what on this node defeats isolation.
struct DoctorOptions : Online {
  std::string root = "/";  ///< where the node's file system is; elsewhere no daemon is asked
};

/// `selftest`: proves with pods of its own that isolation works on this node.
struct SelftestOptions : Online {
  std::int64_t time_limit = 120;  ///< seconds, and as many for the removal of the pods
  std::string handler;            ///< containerd's, for the VM; empty: the first that runs Kata
  std::string runtime_class;      ///< empty: named as the handler
  std::string image;              ///< empty: containerd's pause image
  std::string runtime_endpoint;   ///< of the CRI, without kubelet; empty: a runtime's own socket
  std::string report;             ///< a file for the JSON document; empty: none
  bool demo = false;              ///< also measure waiting, released and placed
  bool clean = false;             ///< only remove what an interrupted one left
};

/// `setup`: our files beside Kata's and containerd's.
struct SetupOptions {
  std::string root = "/";  ///< where the node's file system is
  std::string profile;     ///< "watch", "isolated", "default"; empty: as it is, else isolated
  std::vector<std::string> handlers;      ///< runtime handlers; empty: all
  std::vector<std::string> kata_configs;  ///< further configuration files of Kata
  std::string settings;  ///< a file with further keys of [affinity]; empty: as they are
  bool proxy = false;    ///< also what containerd needs to start our shim
  bool yes = false;      ///< do it
  bool undo = false;     ///< remove what setup wrote
};

/// What makes a guest image: which agent goes in, and which Kata is to use it.
struct GuestImageMaking {
  std::string made;         ///< the new image
  std::string agent;        ///< the program; empty: the one that was installed with us
  std::string kata_config;  ///< a configuration.toml of Kata; empty: the drop-in is only shown
};

/// `guest-image check`: is the agent in a guest's image?
struct GuestImageCheckOptions {
  std::string image;
};

/// `guest-image add`: makes an image with the agent in it.
struct GuestImageAddOptions : GuestImageMaking {
  std::string image;
};

/// `guest-image extension`: makes an image that is added to the guest's own.
struct GuestImageExtensionOptions : GuestImageMaking {
  bool measured = false;  ///< with dm-verity
};

using Command =
    std::variant<TopologyOptions, PlanOptions, AllocateOptions, HintsOptions, MergeHintsOptions,
                 SimulateOptions, StatusOptions, NamesOptions, ExplainOptions, MapOptions,
                 PoolsOptions, ClassOptions, NodeReportOptions, DiscoverOptions, ReportOptions,
                 VerifyOptions, MeasureOptions, NoiseOptions, ReconcileOptions, ReleaseOptions,
                 SandboxAddOptions, SandboxRemoveOptions, ContainerUpdateOptions,
                 ContainerRemoveOptions, PinOptions, EventsOptions, DoctorOptions, SelftestOptions,
                 SetupOptions, GuestImageCheckOptions, GuestImageAddOptions,
                 GuestImageExtensionOptions>;

struct Invocation {
  bool json = false;
  Command command;
};

/// Parses arguments. What asks for no command (--help, --version) and what is wrong is answered on
/// the streams; the error is then how the program ends.
Expected<Invocation, Exit> parse(int argc, const char* const* argv, std::ostream& out,
                                 std::ostream& err);

}  // namespace ka::cli
