// SPDX-License-Identifier: Apache-2.0
// What to ask of kata-agent, which can write a cpuset but neither clear one nor follow what is
// plugged: whatever is written once has to be written again until the guest ends.
#pragma once

#include "policy/facts/guest.hpp"
#include "policy/plan/guest_numbers.hpp"

namespace ka::policy::plan {

/// The guest's CPU numbers identify each container's own CPUs in `spec`: they are
/// certain, or where their order is not known it does not matter.
bool can_place_by_numbers(const GuestSpec& spec, const GuestNumbers& numbers);

/// The sets to request for containers, by the spec and earlier requests. A container that may
/// use every CPU, without an earlier request, is left out, so that it also gets CPUs that are
/// plugged later. One with an earlier request is in it for as long as the guest has it: with all
/// CPUs if the plan does not know it (any more), if the numbers are not certain, and on
/// release.
GuestSets sets_for_kata(const GuestSpec& spec, const GuestNumbers& numbers,
                        const GuestSets& writes);

}  // namespace ka::policy::plan
