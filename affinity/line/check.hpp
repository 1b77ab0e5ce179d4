// SPDX-License-Identifier: Apache-2.0
// Validates requests before they become facts: against the machine, and
// against the current state.
#pragma once

#include "base/process.hpp"
#include "base/result.hpp"
#include "policy/facts/topology.hpp"
#include "policy/ledger/event.hpp"
#include "policy/ledger/ledger.hpp"
#include "vmm/threads.hpp"

namespace ka::line {

class Sandbox;

/// kInvalid: it can never be right (a CPU that does not exist or is offline, a pid that is no VMM);
/// kNotFound: its sandbox or container is not known; kConflict: the VMM belongs to another sandbox.
base::Result<void> check_event(const policy::ledger::Event& event, const policy::Topology& topology,
                               const policy::ledger::Ledger& ledger, const vmm::Roots& roots);

/// The VMM that an operator names by its pid. kInvalid: there is no such process, or it is no VMM.
base::Result<policy::ProcessId> vmm_named(const vmm::Roots& roots, int pid);

/// The same for a set given by hand, against the threads that the sandbox has and what its cgroup
/// allows. kConflict: the CPUs belong to another pod, or its cgroup does not have them. Taking back
/// what was not given is kNotFound.
base::Result<void> check_override(const policy::Override& given, const Sandbox& sandbox,
                                  const policy::ledger::PodRecord& pod,
                                  const policy::Topology& topology,
                                  const policy::ledger::Ledger& ledger);

}  // namespace ka::line
