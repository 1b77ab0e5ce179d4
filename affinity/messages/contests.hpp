// SPDX-License-Identifier: Apache-2.0
// What the log, `verify` and the event stream say of CPUs that more than one pod owns.
#pragma once

#include <string>

#include "policy/ledger/contests.hpp"

namespace ka::messages {

/// "CPU 3 is assigned to more than one pod: container app of pod ns/a, container db of pod ns/b".
std::string sentence(const policy::ledger::Contest& contest);

}  // namespace ka::messages
