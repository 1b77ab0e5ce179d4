// SPDX-License-Identifier: Apache-2.0
#include "affinity/guests/guest_quotas.hpp"

#include <algorithm>

#include "affinity/line/tuned_containers.hpp"

namespace ka::guests {

void lift_requested_quotas(const line::Node& node, const policy::ledger::PodRecord& pod,
                           policy::GuestSpec& spec) {
  for (const line::TunedContainer& one : line::tuned_containers(node, pod)) {
    if (one.tuned.tuning.has_quota || one.cpus.empty()) continue;
    const auto found = std::ranges::find(spec.containers, one.id, &policy::GuestContainer::id);
    if (found != spec.containers.end()) found->lift_quota = true;
  }
}

}  // namespace ka::guests
