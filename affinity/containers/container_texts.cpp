// SPDX-License-Identifier: Apache-2.0
#include "affinity/containers/container_texts.hpp"

#include <algorithm>

#include "guest-agent/protocol/notice.hpp"

namespace ka::containers {
namespace {

/// The guest's facts for one container.
struct Known {
  policy::GuestSpec spec;  ///< of the container alone
  policy::GuestReport report;
};

Known known_of(const line::SandboxView& view, const std::string& container) {
  if (view.guest == nullptr) return {};
  Known known{view.guest->spec, view.guest->report.value_or(policy::GuestReport{})};
  std::erase_if(known.spec.containers, [&](const auto& other) { return other.id != container; });
  return known;
}

/// The guest's numbers of a container's vCPUs; those that are none of a plan's are left out.
policy::GuestCpuSet cpus_of(const Known& known) {
  if (known.spec.containers.empty()) return {};
  const auto& states = known.report.containers;
  const auto state =
      std::ranges::find(states, known.spec.containers.front().id, &policy::GuestContainerState::id);
  return state == states.end() ? policy::GuestCpuSet{} : state->wanted;
}

/// A container's vCPUs, taken apart.
struct Vcpus {
  policy::GuestCpuSet dedicated, floating;
  policy::CpuSet host_cpus;
  policy::NodeSet host_nodes;
  std::string map;  ///< "6:2:0 7:3:0": the guest's CPU, its CPUs and nodes on the host
};

void add(Vcpus& vcpus, int number, const policy::GuestVcpu& vcpu) {
  (vcpu.dedicated ? vcpus.dedicated : vcpus.floating).add(number);
  vcpus.host_cpus |= vcpu.cpus;
  vcpus.host_nodes |= vcpu.nodes;
  vcpus.map += (vcpus.map.empty() ? "" : " ") + std::to_string(number) + ':' +
               policy::format_list(vcpu.cpus) + ':' + policy::format_list(vcpu.nodes);
}

Vcpus vcpus_of(const Known& known) {
  const policy::GuestCpuSet own = cpus_of(known);
  Vcpus vcpus;
  for (const policy::GuestCpu& cpu : known.report.cpus) {
    const auto vcpu = std::ranges::find_if(known.spec.vcpus, [&](const auto& candidate) {
      return candidate.hardware_id == cpu.hardware_id;
    });
    if (own.contains(cpu.number) && vcpu != known.spec.vcpus.end()) {
      add(vcpus, cpu.number, *vcpu);
    }
  }
  return vcpus;
}

std::string line(const std::string& name, const std::string& value) {
  return "KATA_AFFINITY_" + name + "=\"" + value + "\"\n";
}

std::string environment_text(const Known& known) {
  const Vcpus vcpus = vcpus_of(known);
  return line("CPUS", policy::format_list(vcpus.dedicated | vcpus.floating)) +
         line("DEDICATED_CPUS", policy::format_list(vcpus.dedicated)) +
         line("FLOATING_CPUS", policy::format_list(vcpus.floating)) +
         line("COMMON_CPUS", policy::format_list(known.report.common)) +
         line("HOST_CPUS", policy::format_list(vcpus.host_cpus)) +
         line("HOST_NODES", policy::format_list(vcpus.host_nodes)) + line("MAP", vcpus.map);
}

}  // namespace

std::map<std::string, std::string> container_texts(const line::SandboxView& view,
                                                   const std::string& container) {
  const Known known = known_of(view, container);
  return {{"cpus.json", guest::notice_text(known.spec, known.report)},
          {"environment", environment_text(known)}};
}

std::vector<std::pair<std::string, std::string>> container_variables(
    const policy::ContainerFacts& container, const policy::Topology& topology,
    const std::string& seen_at) {
  policy::NodeSet nodes;
  for (const int cpu : container.cpus) {
    if (const policy::Cpu* found = topology.find(cpu)) nodes.add(found->numa);
  }
  return {{"KATA_AFFINITY_CPUS_FILE", seen_at + "/cpus.json"},
          {"KATA_AFFINITY_HOST_CPUS", policy::format_list(container.cpus)},
          {"KATA_AFFINITY_HOST_NODES", policy::format_list(nodes)},
          {"KATA_AFFINITY_EXCLUSIVE", container.exclusive ? "true" : "false"}};
}

}  // namespace ka::containers
