// SPDX-License-Identifier: Apache-2.0
// Pods without a VM. Nothing of them is placed here; what counts is which CPUs are theirs alone.
#pragma once

#include "policy/facts/id_set.hpp"
#include "policy/ledger/ledger.hpp"

namespace ka::line {

/// It has no VM, by all that was reported of it. False where only its containers were reported:
/// such a record may be that of any pod.
bool is_plain(const policy::ledger::PodRecord& pod);

/// CPUs that its containers own which have not exited, without contested ones.
policy::CpuSet own_cpus(const policy::ledger::PodRecord& pod, const policy::ledger::Ledger& ledger);

}  // namespace ka::line
