// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/noise/targets.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/host/cgroup_names.hpp"

namespace ka::cli::noise {
namespace {

namespace json = boost::json;

/// Of a vCPU: its thread, and the name of its sandbox.
struct Vcpu {
  int tid = 0;
  std::string sandbox;
};

using Vcpus = std::map<std::pair<std::string, long long>, Vcpu>;

Vcpus vcpus_of(const json::value& sandboxes) {
  Vcpus vcpus;
  for (const json::value& sandbox : array_of(sandboxes, "sandboxes")) {
    const std::string id = text_of(sandbox, "id"), name = text_of(sandbox, "pod_name");
    for (const json::value& thread : array_of(sandbox, "threads")) {
      if (text_of(thread, "role") != "vcpu") continue;
      vcpus[{id, number_of(thread, "vcpu")}] = {static_cast<int>(number_of(thread, "tid")),
                                                name.empty() ? id : name};
    }
  }
  return vcpus;
}

void add_owner(const json::value& owner, Target& target) {
  const std::string pod = text_of(owner, "pod"), pod_name = text_of(owner, "pod_name");
  const std::string name = text_of(owner, "name"), container = text_of(owner, "container");
  target.owners.push_back(
      {pod, pod_name,
       (pod_name.empty() ? pod : pod_name) + ", container " + (name.empty() ? container : name)});
  if (!flag_of(owner, "vm")) target.containers.insert(container);
}

void add_vcpu(const json::value& vcpu, const Vcpus& vcpus, Target& target) {
  const long long index = number_of(vcpu, "vcpu");
  const auto found = vcpus.find({text_of(vcpu, "sandbox"), index});
  if (found == vcpus.end()) return;
  target.vcpus.insert(found->second.tid);
  target.tenants.push_back("vCPU " + std::to_string(index) + " of " + found->second.sandbox);
}

}  // namespace

Targets read_targets(const json::value& node, const json::value& sandboxes) {
  const Vcpus vcpus = vcpus_of(sandboxes);
  Targets targets;
  for (const json::value& cpu : array_of(node, "cpus")) {
    if (array_of(cpu, "owners").empty()) continue;
    Target& target = targets[static_cast<int>(number_of(cpu, "cpu"))];
    for (const json::value& owner : array_of(cpu, "owners")) add_owner(owner, target);
    for (const json::value& vcpu : array_of(cpu, "vcpus")) add_vcpu(vcpu, vcpus, target);
  }
  return targets;
}

std::vector<Named> pods_of(const Targets& targets) {
  std::map<std::string, Named> pods;
  for (const auto& [cpu, target] : targets) {
    for (const Owner& owner : target.owners) {
      const std::string& name = owner.pod_name;
      const std::string last = name.substr(name.find('/') + 1);
      pods[owner.pod] = {owner.pod, name.empty() ? std::vector<std::string>{}
                                                 : std::vector<std::string>{name, last}};
    }
  }
  std::vector<Named> list;
  for (auto& [id, pod] : pods) list.push_back(std::move(pod));
  return list;
}

Targets owned_by(const Targets& targets, const std::string& pod) {
  Targets owned;
  for (const auto& [cpu, target] : targets) {
    if (std::ranges::find(target.owners, pod, &Owner::pod) != target.owners.end()) {
      owned[cpu] = target;
    }
  }
  return owned;
}

Targets among(const Targets& targets, const policy::CpuSet& cpus) {
  Targets chosen;
  for (const int cpu : cpus) {
    const auto known = targets.find(cpu);
    chosen[cpu] = known == targets.end() ? Target{} : known->second;
  }
  return chosen;
}

bool is_tenant(const Target& target, int tid, const TaskFacts* task) {
  if (target.vcpus.contains(tid)) return true;
  return task != nullptr && std::ranges::any_of(target.containers, [&](const std::string& id) {
           return host::is_of_container(task->cgroup, id);
         });
}

}  // namespace ka::cli::noise
