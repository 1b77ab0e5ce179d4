// SPDX-License-Identifier: Apache-2.0
// What holds for every answer on every machine.
#pragma once

#include "tests/property/allocate/random.hpp"

namespace ka::test {

/// Sends so many random requests: an answer has the right size, comes from what is available, keeps
/// what is held, and consists of whole cores where those are promised.
void check_validity(Random& random, const policy::allocate::Machine& machine, int requests);

/// Sends so many random requests that kubelet's static policy knows: the answer is what the plainly
/// written rules give.
void check_rules(Random& random, const policy::allocate::Machine& machine, int requests);

}  // namespace ka::test
