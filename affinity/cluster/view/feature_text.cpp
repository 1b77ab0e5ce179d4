// SPDX-License-Identifier: Apache-2.0
#include "affinity/cluster/view/feature_text.hpp"

#include "affinity/cluster/view/documents.hpp"

namespace ka::cluster {

std::string feature_text(std::optional<NodeState> state) {
  constexpr std::size_t kSize = 64;
  std::string text;
  if (state) text.append(kNodeKey).append("=").append(state_name(*state));
  text.resize(kSize, '\n');
  return text;
}

}  // namespace ka::cluster
