// SPDX-License-Identifier: Apache-2.0
// Whether a cgroup that an operator names for a sandbox is the sandbox's own. Its processes count
// as part of the sandbox and are placed with it.
#pragma once

#include <string>

#include "base/result.hpp"
#include "policy/ledger/ledger.hpp"
#include "vmm/facts/facts.hpp"

namespace ka::line {

/// `pod` has the requested id, cgroup and VMM (if any) of the sandbox. kInvalid: there is no such
/// cgroup, it holds the whole machine, the VMM is not in it, or it holds processes that neither the
/// VMM nor its shim has started and that are not connected to the VMM. kConflict: it holds the
/// cgroup of another sandbox, or the VMM is in a cgroup that was named for another sandbox.
/// kUnavailable: what decides that cannot be read now.
base::Result<void> check_own_cgroup(const policy::ledger::PodRecord& pod,
                                    const policy::ledger::Ledger& ledger, const vmm::Roots& roots);

}  // namespace ka::line
