// SPDX-License-Identifier: Apache-2.0
#include "affinity/api/owner.hpp"

#include <boost/json/object.hpp>

namespace ka::api {

boost::json::object owner_to_json(const policy::ledger::PodRecord& pod,
                                  const policy::ContainerFacts& container) {
  return {{"pod", pod.id},
          {"pod_name", pod.pod_name},
          {"container", container.id},
          {"name", container.name},
          {"vm", pod.vmm.has_value()}};
}

boost::json::object owner_to_json(const policy::ledger::Claim& claim) {
  return {{"pod", claim.pod_uid},    {"pod_name", ""}, {"container", claim.container},
          {"name", claim.container}, {"vm", false},    {"reported", false}};
}

boost::json::object owner_to_json(const policy::ledger::PreparedClaim& claim) {
  const std::string device = policy::ledger::claim_owner(claim.uid);
  return {{"pod", ""},   {"pod_name", ""},    {"container", device}, {"name", device},
          {"vm", false}, {"reported", false}, {"claim", claim.uid}};
}

}  // namespace ka::api
