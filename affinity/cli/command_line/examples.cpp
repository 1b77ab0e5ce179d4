// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/command_line/examples.hpp"

#include <algorithm>
#include <array>

namespace ka::cli {
namespace {

struct Example {
  std::string_view path;
  std::string_view arguments;
  std::string_view effect;
};

constexpr std::size_t kWidth = 80;
constexpr std::string_view kProgram = "\n  kata-affinityctl ";

constexpr auto kExamples = std::to_array<Example>({
    {"", "doctor", "check this node's configuration"},
    {"", "setup", "show what it would write"},
    {"", "status --watch", "live view of sandboxes and threads"},
    {"", "verify", "exit status 1 when violated or unknown"},
    {"topology", "topology", "this machine"},
    {"topology", "topology --topology 'synthetic:pack:2 core:8 pu:2'", "a synthetic machine"},
    {"plan", "plan --scenario s.json", "the placement on this machine"},
    {"plan", "plan --pod pod.json", "in managed mode: whether it fits"},
    {"plan", "plan --managed", "before managed mode: what would move"},
    {"plan", "plan --scenario new.json --previous p.json", "after a change; p.json: plan --json"},
    {"allocate", "allocate --cpus 4", "as kubelet would"},
    {"allocate", "allocate --cpus 4 --option full-pcpus-only", "whole cores"},
    {"hints", "hints --cpus 4", "NUMA nodes with room for 4 CPUs"},
    {"merge-hints", "merge-hints --input hints.json", "one problem from a file"},
    {"simulate", "simulate --trace pods.jsonl", "with kubelet's allocator"},
    {"simulate", "simulate --trace pods.jsonl --strategy fitted", "with ours"},
    {"status", "status", "all sandboxes"},
    {"status", "status shop/cart --legend", "one pod, with the legend"},
    {"status", "status --watch", "refresh every second"},
    {"explain", "explain shop/cart", "why its threads run there"},
    {"explain", "explain --cpu 4", "who owns CPU 4, by which source"},
    {"explain", "explain --cpus 4 --available 0-15", "why these CPUs"},
    {"map", "map", "in the terminal"},
    {"map", "map --svg node.svg", "as a picture"},
    {"pools", "pools", "pools, free CPUs, containers"},
    {"pools", "pools --json | jq .available", "free for exclusive containers"},
    {"class", "class shop/cart exclusive", "all of its containers"},
    {"class", "class shop/cart/app share", "one container"},
    {"class", "class shop/cart none", "back to the shared pool"},
    {"node-report", "node-report", "exit status 1 when a check fails"},
    {"node-report", "node-report --json | jq .checks", "the checks alone"},
    {"discover", "discover", "features, one per line"},
    {"discover", "discover --valid-for 3m --output features.d/kata-affinity",
     "for NFD, from a timer"},
    {"report", "report --html node.html", "verdict, CPUs, threads, drift"},
    {"report", "report --html -", "on standard output"},
    {"verify", "verify", "0: ok or degraded, 1: violated or unknown"},
    {"verify", "verify --strict || logger 'pinning broken'", "for monitoring"},
    {"measure", "measure shop/cart", "its dedicated vCPUs, 10 seconds"},
    {"measure", "measure shop/cart --for 30s --vcpus 2-3 --json", "as JSON"},
    {"noise", "noise shop/cart", "what else ran on its CPUs in 10 seconds"},
    {"noise", "noise --cpus 4-5 --for 5s --json", "these CPUs, owned or not"},
    {"noise", "noise --counters", "all dedicated vCPUs, since each was first counted"},
    {"events", "events", "until Ctrl-C"},
    {"events", "events --json | jq .kind", "one JSON document per line"},
    {"reconcile", "reconcile", "all sandboxes"},
    {"reconcile", "reconcile shop/cart", "one pod"},
    {"release", "release shop/cart", "one pod, until it is reconciled"},
    {"release", "release", "all sandboxes"},
    {"sandbox", "sandbox add vm1 --vmm-pid 4711", "a VM started by hand"},
    {"sandbox", "sandbox rm vm1", "release and forget it"},
    {"sandbox add", "sandbox add vm1 --vmm-pid 4711", "a VM by its process"},
    {"sandbox add", "sandbox add vm1 --domain debian12", "a libvirt domain"},
    {"sandbox rm", "sandbox rm vm1", "release and forget it"},
    {"container", "container update vm1 app --cpus 2-3 --exclusive", "it owns CPUs 2-3"},
    {"container", "container rm vm1 app", "it has ended"},
    {"container update", "container update vm1 app --cpus 2-3 --exclusive", "it owns CPUs 2-3"},
    {"container update", "container update vm1 side --cpus 0-1 --shared", "it shares CPUs 0-1"},
    {"container rm", "container rm vm1 app", "it has ended"},
    {"vcpupin", "vcpupin shop/cart", "where the vCPUs run"},
    {"vcpupin", "vcpupin shop/cart 1 4 --for 10m", "vCPU 1 on CPU 4, 10 minutes"},
    {"vcpupin", "vcpupin shop/cart 1 --remove", "back to the plan"},
    {"emulatorpin", "emulatorpin shop/cart", "where they run"},
    {"emulatorpin", "emulatorpin shop/cart 0-1 --for 10m", "on CPUs 0-1, 10 minutes"},
    {"iothreadpin", "iothreadpin shop/cart", "where the iothreads run"},
    {"iothreadpin", "iothreadpin shop/cart io1 0-1", "io1 on CPUs 0-1"},
    {"vhostpin", "vhostpin shop/cart", "where they run"},
    {"vhostpin", "vhostpin shop/cart 0-1 --for 10m", "on CPUs 0-1, 10 minutes"},
    {"doctor", "doctor", "exit status 1 on a FAIL"},
    {"doctor", "doctor --json | jq '.checks[].command'", "the remedies alone"},
    {"doctor", "doctor --root /host", "in a container with the node's root"},
    {"selftest", "selftest", "0: kept, 1: violated, 2: cannot run"},
    {"selftest", "selftest --report report.json", "to attach to a bug report"},
    {"selftest", "selftest --clean", "after kill -9"},
    {"setup", "setup", "show what would be written"},
    {"setup", "setup --profile watch --yes", "plan and report, move nothing"},
    {"setup", "setup --profile isolated --yes", "isolate; no pod restarts"},
    {"setup", "setup --undo --yes", "remove what setup wrote"},
    {"guest-image", "guest-image check kata.img", "is the agent in it?"},
    {"guest-image", "guest-image add kata.img -o new.img", "a copy with the agent"},
    {"guest-image check", "guest-image check kata.img", "exit status 1 without it"},
    {"guest-image add", "guest-image add kata.img -o new.img", "kata.img is not modified"},
    {"guest-image extension", "guest-image extension -o ext.img", "for Kata 4"},
});

/// The effect follows in a column, or on the next line where it does not fit.
std::string line_of(const Example& example, std::size_t widest) {
  const std::size_t column = kProgram.size() - 1 + widest + 2;
  const bool fits = column + example.effect.size() <= kWidth;
  const std::string gap =
      fits ? std::string(widest + 2 - example.arguments.size(), ' ') : "\n      ";
  return std::string(kProgram) + std::string(example.arguments) + gap + std::string(example.effect);
}

}  // namespace

std::string examples_of(std::string_view path) {
  std::size_t widest = 0;
  for (const Example& example : kExamples) {
    if (example.path == path) widest = std::max(widest, example.arguments.size());
  }
  std::string text;
  for (const Example& example : kExamples) {
    if (example.path == path) text += (text.empty() ? "Examples:" : "") + line_of(example, widest);
  }
  return text;
}

}  // namespace ka::cli
