// SPDX-License-Identifier: Apache-2.0
// What a profile writes on a node, what it gives and what it costs. Pure: the node was read before.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "affinity/cli/kata/profile.hpp"
#include "affinity/cli/node/node.hpp"
#include "base/result.hpp"

namespace ka::cli {

struct ProfileSettings {
  /// Keys of [affinity] with their values, in the order in which they are written.
  std::vector<std::pair<std::string, std::string>> keys;
  /// Why these and not the usual ones, and what else the node needs; may be empty.
  std::vector<std::string> notes;
};

/// kNotFound: the node has nothing to isolate with; the message has the reason.
base::Result<ProfileSettings> settings_of(Profile profile, const NodeFacts& node);

/// What a profile gives on this node, and what it costs: two sentences.
struct ProfileText {
  std::string gives;
  std::string costs;
};
ProfileText text_of(Profile profile, const NodeFacts& node);

}  // namespace ka::cli
