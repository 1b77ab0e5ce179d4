// SPDX-License-Identifier: Apache-2.0
#include "affinity/messages/ownership.hpp"

#include "affinity/messages/terms.hpp"

namespace ka::messages {
namespace {

using policy::ledger::Basis;
using policy::ledger::Ownership;

std::string reason(const Ownership& ownership) {
  switch (ownership.basis) {
    case Basis::kOperator:
      return "set through the API";
    case Basis::kKubelet:
      return "according to kubelet's state file";
    case Basis::kManaged:
      return "kata-affinity gave them to it";
    case Basis::kDra:
      return ownership.exclusive ? "dra-driver-cpu has prepared its claims"
                                 : "dra-driver-cpu gives out this node's CPUs, and has prepared no "
                                   "claim for it";
    case Basis::kPodResources:
      return "according to kubelet's PodResources API";
    case Basis::kBefore:
      return "as before the restart";
    case Basis::kQuota:
      return "its quota equals its set, which no other pod has";
    case Basis::kRequest:
      return "no quota, and its request equals its set, which no other container has";
    case Basis::kSet:
      return ownership.in_doubt ? "neither quota nor request is known"
                                : "its quota and request do not cover its set, or others have "
                                  "that set";
  }
  return {};
}

}  // namespace

std::string sentence(const policy::ContainerFacts& container, const Ownership& ownership) {
  const std::string name = container.name.empty() ? "" : " (" + container.name + ')';
  return "container " + container.id + name +
         (ownership.exclusive ? " owns its CPUs: " : " shares its CPUs: ") + reason(ownership) +
         (ownership.in_doubt ? "; uncertain: kubelet does not report it" : "");
}

std::string sentence(const policy::ledger::Assignment& assignment,
                     const policy::ledger::AssignedDevices& devices) {
  return "container " + assignment.container + " has " + counted(devices.number, "device") +
         " of " + devices.resource +
         (devices.nodes.empty() ? "" : " near " + nodes_text(devices.nodes));
}

}  // namespace ka::messages
