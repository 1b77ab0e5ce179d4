// SPDX-License-Identifier: Apache-2.0
// What to ask of kata-agent, which can write a cpuset but neither clear one nor follow what is
// plugged: whatever is written once has to be written again until the guest ends.
#pragma once

#include "policy/facts/guest.hpp"
#include "policy/plan/guest_numbers.hpp"

namespace ka::policy::plan {

/// The numbers of the guest's CPUs tell for each container of `wishes` which are its own: they are
/// certain, or where their order is not known it does not matter.
bool can_place_by_numbers(const GuestWishes& wishes, const GuestNumbers& numbers);

/// The sets that containers are to have, by what is wished and what they were told before. A
/// container that may use every CPU and was never told otherwise is not in it: it gets what is
/// plugged later, too. One that was told something is, for as long as the guest has it; with all
/// CPUs where the plan does not know it (any more), where the numbers are not certain, and to give
/// everything back.
GuestSets sets_for_kata(const GuestWishes& wishes, const GuestNumbers& numbers,
                        const GuestSets& told);

}  // namespace ka::policy::plan
