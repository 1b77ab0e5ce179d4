// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/pod_resources/answer.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "policy/facts/limits.hpp"
#include "shim-ext/proto/pod_resources.pb.h"

namespace ka::pod_resources {
namespace {

using base::ErrorCode;
using policy::ledger::AssignedDevices;
using policy::ledger::Assignment;

auto broken(const std::string& what) { return base::fail(ErrorCode::kInvalid, what); }

template <typename Message>
base::Result<Message> parse(std::string_view bytes) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return broken("not a PodResources message");
  }
  return message;
}

template <typename Set>
bool add(Set& set, std::int64_t id) {
  if (id < 0 || id >= policy::kMaxIds) return false;
  set.add(static_cast<int>(id));
  return true;
}

template <typename Ids>
base::Result<policy::CpuSet> to_cpus(const Ids& ids) {
  policy::CpuSet cpus;
  for (const std::int64_t id : ids) {
    if (!add(cpus, id)) return broken("CPU " + std::to_string(id) + " cannot be");
  }
  return cpus;
}

/// kubelet lists a resource's devices once for each NUMA node, or one by one.
class Devices {
 public:
  bool add_from(const proto::podresources::ContainerDevices& seen) {
    AssignedDevices& known = by_name_[base::printable(seen.resource_name())];
    known.number += seen.device_ids_size();
    return std::ranges::all_of(seen.topology().nodes(),
                               [&](const auto& node) { return add(known.nodes, node.id()); });
  }

  std::vector<AssignedDevices> release() {
    std::vector<AssignedDevices> list;
    for (auto& [name, devices] : by_name_) {
      devices.resource = name;
      list.push_back(std::move(devices));
    }
    return list;
  }

 private:
  std::map<std::string, AssignedDevices> by_name_;
};

/// Uids of the claims that dra-driver-cpu prepared for the container.
std::vector<std::string> claims_of(const proto::podresources::ContainerResources& seen) {
  constexpr std::string_view kPrefix = "dra.k8s.io/cpu=claim-";
  std::set<std::string> claims;
  for (const auto& resource : seen.dynamic_resources()) {
    for (const auto& claim : resource.claim_resources()) {
      for (const auto& device : claim.cdi_devices()) {
        const std::string_view name = device.name();
        if (name.starts_with(kPrefix)) claims.insert(base::printable(name.substr(kPrefix.size())));
      }
    }
  }
  return {claims.begin(), claims.end()};
}

base::Result<Assignment> to_assignment(const std::string& pod,
                                       const proto::podresources::ContainerResources& seen) {
  auto cpus = to_cpus(seen.cpu_ids());
  if (!cpus) return unexpected(std::move(cpus.error()));
  Devices devices;
  for (const auto& device : seen.devices()) {
    if (!devices.add_from(device)) return broken("a device's NUMA node cannot be");
  }
  return Assignment{pod, base::printable(seen.name()), std::move(*cpus), devices.release(),
                    claims_of(seen)};
}

base::Result<void> append(const std::string& name, const proto::podresources::PodResources& pod,
                          std::vector<Assignment>& list) {
  for (const auto& container : pod.containers()) {
    auto assignment = to_assignment(name, container);
    if (!assignment) return unexpected(std::move(assignment.error()));
    list.push_back(std::move(*assignment));
  }
  auto cpus = to_cpus(pod.cpu_ids());
  if (!cpus) return unexpected(std::move(cpus.error()));
  if (!cpus->empty()) list.push_back({name, {}, std::move(*cpus)});
  if (list.size() > policy::kMaxNodeContainers) return broken("too many containers");
  return {};
}

std::string name_of(const proto::podresources::PodResources& pod) {
  return base::printable(pod.namespace_() + '/' + pod.name());
}

std::set<std::string> names_borne_twice(const proto::podresources::ListResponse& response) {
  std::set<std::string> once, twice;
  for (const auto& pod : response.pod_resources()) {
    std::string name = name_of(pod);
    if (!once.insert(name).second) twice.insert(std::move(name));
  }
  return twice;
}

}  // namespace

base::Result<std::vector<Assignment>> parse_list(std::string_view message) {
  const auto response = parse<proto::podresources::ListResponse>(message);
  if (!response) return unexpected(response.error());
  const auto ambiguous = names_borne_twice(*response);
  std::vector<Assignment> list;
  for (const auto& pod : response->pod_resources()) {
    const std::string name = name_of(pod);
    if (ambiguous.contains(name)) continue;
    if (auto added = append(name, pod, list); !added) return unexpected(std::move(added.error()));
  }
  std::ranges::sort(list);
  return list;
}

base::Result<policy::CpuSet> parse_allocatable(std::string_view message) {
  const auto response = parse<proto::podresources::AllocatableResponse>(message);
  if (!response) return unexpected(response.error());
  return to_cpus(response->cpu_ids());
}

}  // namespace ka::pod_resources
