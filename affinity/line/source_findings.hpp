// SPDX-License-Identifier: Apache-2.0
// Sources that cannot be read: who owns which CPU may have changed since they last reported.
#pragma once

#include <map>
#include <vector>

#include "affinity/board/views.hpp"
#include "affinity/line/report.hpp"
#include "base/result.hpp"
#include "policy/ledger/ledger.hpp"

namespace ka::line {

/// A finding for each source that is read only at each drift check, for want of a notification:
/// what it reports is true, and late.
std::vector<Finding> evaluate_lateness(const std::map<policy::ledger::Source, base::Error>& late);

/// A finding for each source that is down although this node has it, and for each pod of which a
/// source cannot see whether it has a VM. PodResources counts only where kubelet's state does not
/// decide; else it is only compared (evaluate_owners()).
std::vector<Finding> evaluate_sources(
    const std::map<policy::ledger::Source, board::SourceView>& sources,
    const policy::ledger::Ledger& ledger);

}  // namespace ka::line
