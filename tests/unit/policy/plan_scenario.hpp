// SPDX-License-Identifier: Apache-2.0
// Words to write planning scenarios with: machines, containers, and plans as one line of text.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "policy/facts/sandbox.hpp"
#include "policy/facts/topology.hpp"
#include "policy/plan/invariants.hpp"
#include "policy/plan/plan.hpp"

namespace scenario {

using namespace ka::policy;
using namespace ka::policy::plan;

inline CpuSet cpus(const std::string& list) { return parse_list<CpuTag>(list).value(); }

/// Like most servers: first one thread of every core, then the second ones, nodes in a row.
inline std::vector<Cpu> cpu_list(int nodes, int cores, int threads) {
  std::vector<Cpu> list;
  const int all_cores = nodes * cores;
  for (int cpu = 0; cpu < all_cores * threads; ++cpu) {
    const int core = cpu % all_cores;
    const int node = core / cores;
    list.push_back({.cpu = cpu, .core = core, .socket = node, .numa = node, .l3 = node});
  }
  return list;
}

inline Topology machine(int nodes, int cores, int threads) {
  return Topology::make(cpu_list(nodes, cores, threads)).value();
}

/// The same machine after `change` was made to each CPU of the list.
template <typename Change>
Topology machine_with(int nodes, int cores, int threads, const std::string& which, Change change) {
  std::vector<Cpu> list = cpu_list(nodes, cores, threads);
  for (Cpu& cpu : list) {
    if (cpus(which).contains(cpu.cpu)) change(cpu);
  }
  return Topology::make(std::move(list)).value();
}

inline ContainerFacts owner(const std::string& id, const std::string& list) {
  return {.id = id, .name = "name-" + id, .cpus = cpus(list), .exclusive = true};
}

inline ContainerFacts shared(const std::string& id, const std::string& list) {
  return {.id = id, .name = "name-" + id, .cpus = cpus(list)};
}

/// As Kata makes them: no SMT, one node. `threads` > 1 gives the guest SMT.
inline std::vector<VcpuFacts> vcpus(int count, int threads = 1) {
  std::vector<VcpuFacts> list;
  for (int i = 0; i < count; ++i) {
    list.push_back({.index = i, .core = i / threads, .thread = i % threads});
  }
  return list;
}

inline SandboxFacts sandbox(int vcpu_count, std::vector<ContainerFacts> containers) {
  return {
      .id = "s", .pod_uid = "p", .vcpus = vcpus(vcpu_count), .containers = std::move(containers)};
}

inline Settings keeping_house(Housekeeping::Kind kind, const std::string& list = "") {
  Settings settings;
  settings.housekeeping = {kind, cpus(list)};
  return settings;
}

/// Housekeeping on the sandbox's own CPUs.
inline Settings at_home() { return keeping_house(Housekeeping::Kind::kSandbox); }

inline Settings pinning(VcpuPinning how) {
  Settings settings = at_home();
  settings.vcpu_pinning = how;
  return settings;
}

/// "0:0-1 1:2! 2:3! 3:4-5(c1)": index, CPUs, `!` dedicated, container of a group.
inline std::string vcpu_line(const SandboxPlan& plan) {
  std::string line;
  for (const VcpuPlan& vcpu : plan.vcpus) {
    if (!line.empty()) line += ' ';
    line += std::to_string(vcpu.index) + ':' + format_list(vcpu.cpus);
    if (vcpu.role == VcpuRole::kDedicated) {
      line += '!';
    } else if (!vcpu.container.empty()) {
      line += '(' + vcpu.container + ')';
    }
  }
  return line;
}

/// "c1:1-2! c2:0": the vCPUs of each container, `!` where it is dedicated.
inline std::string container_line(const SandboxPlan& plan) {
  std::string line;
  for (const ContainerPlan& container : plan.containers) {
    if (!line.empty()) line += ' ';
    line += container.id + ':' + format_list(container.vcpus) + (container.dedicated ? "!" : "");
  }
  return line;
}

inline std::string codes_line(const std::vector<Note>& notes) {
  std::vector<std::string> names;
  for (const Note& note : notes) names.emplace_back(code_name(note.code));
  std::ranges::sort(names);
  std::string line;
  for (const std::string& name : names) line += (line.empty() ? "" : " ") + name;
  return line;
}

inline std::string warnings(const SandboxPlan& plan) { return codes_line(plan.warnings); }
inline std::string reasons(const SandboxPlan& plan) { return codes_line(plan.reasons); }

inline const Note* find_note(const std::vector<Note>& notes, Code code) {
  const auto found = std::ranges::find(notes, code, &Note::code);
  return found == notes.end() ? nullptr : &*found;
}

inline std::string violation_line(const std::vector<Violation>& violations) {
  std::string line;
  for (const Violation& violation : violations) {
    line += (line.empty() ? "" : "; ") + ("I" + std::to_string(invariant_of(violation.breach))) +
            ' ' + std::string(breach_name(violation.breach)) + ' ' + violation.sandbox + ' ' +
            violation.subject + ' ' + format_list(violation.cpus);
  }
  return line;
}

/// A node with one sandbox on it. It keeps house on its own CPUs unless a test says otherwise, so
/// that what is about vCPUs shows no other CPUs.
struct Case {
  Topology topology = machine(1, 8, 1);
  std::string pool = "0-1";
  std::string foreign;
  SandboxFacts facts;
  Settings settings = at_home();

  NodeView view() const { return {topology, cpus(pool), cpus(foreign), {}}; }
  SandboxPlan plan(const SandboxPlan* previous = nullptr) const {
    return plan_sandbox(view(), facts, settings, previous);
  }
  std::string broken(const SandboxPlan& made) const {
    return violation_line(check_plan(view(), facts, settings, made));
  }
};

}  // namespace scenario
