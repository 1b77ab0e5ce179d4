// SPDX-License-Identifier: Apache-2.0
#include "policy/facts/memory.hpp"

namespace ka::policy {

NodeBytes bytes_by_node(const MemoryFacts& facts) {
  NodeBytes all = facts.bound;
  for (const MemoryPart& part : facts.parts) {
    for (const auto& [node, bytes] : part.placed) all[node] += bytes;
  }
  return all;
}

}  // namespace ka::policy
