// SPDX-License-Identifier: Apache-2.0
// Messages of `explain` and `verify` about the owner of a container's CPUs, and the evidence.
#pragma once

#include <string>

#include "policy/facts/sandbox.hpp"
#include "policy/ledger/event.hpp"
#include "policy/ledger/ownership.hpp"

namespace ka::messages {

/// "container c1 (app) owns its CPUs: its quota equals its set, which no other pod has".
std::string sentence(const policy::ContainerFacts& container,
                     const policy::ledger::Ownership& ownership);

/// "container app has 2 devices of nvidia.com/gpu near node 1".
std::string sentence(const policy::ledger::Assignment& assignment,
                     const policy::ledger::AssignedDevices& devices);

}  // namespace ka::messages
