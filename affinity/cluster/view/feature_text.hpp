// SPDX-License-Identifier: Apache-2.0
// The node's state as a feature file of Node Feature Discovery (source/local of nfd-worker).
#pragma once

#include <optional>
#include <string>

#include "affinity/cluster/view/node.hpp"

namespace ka::cluster {

/// A line `LABEL=STATE`; absent: no feature. Empty lines make up for the length, which is always
/// the same: the file can be overwritten at once, and is at no time empty or cut.
std::string feature_text(std::optional<NodeState> state);

}  // namespace ka::cluster
