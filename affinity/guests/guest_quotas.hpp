// SPDX-License-Identifier: Apache-2.0
// CFS quotas inside a guest.
#pragma once

#include "affinity/line/node.hpp"
#include "policy/plan/guest.hpp"

namespace ka::guests {

/// Adds to the request to a guest that containers have no quota there, where their pod requests
/// that (CRI-O's cpu-quota.crio.io) and they have CPUs of their own.
void lift_requested_quotas(const line::Node& node, const policy::ledger::PodRecord& pod,
                           policy::GuestSpec& spec);

}  // namespace ka::guests
