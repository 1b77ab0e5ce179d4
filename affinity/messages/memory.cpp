// SPDX-License-Identifier: Apache-2.0
#include "affinity/messages/memory.hpp"

#include "affinity/messages/terms.hpp"

namespace ka::messages {

using policy::plan::MemoryVerdict;

std::string memory_text(const policy::MemoryFacts& facts) {
  std::string text;
  for (const auto& [node, bytes] : policy::bytes_by_node(facts)) {
    text += (text.empty() ? "" : ", ") + size_text(bytes) + " on node " + std::to_string(node);
  }
  return text.empty() ? "none" : text;
}

std::string sentence(const policy::plan::MemoryPlan& plan, bool moves) {
  const std::string elsewhere = size_text(plan.misplaced) + " not on " + nodes_text(plan.wanted);
  switch (plan.verdict) {
    case MemoryVerdict::kAnywhere:
      return "no preferred node";
    case MemoryVerdict::kInPlace:
      return "in place, on " + nodes_text(plan.wanted) + " with its CPUs";
    case MemoryVerdict::kMove:
      return elsewhere + (moves ? ": migrating" : ": not moved, memory is \"follow\"");
    case MemoryVerdict::kDevice:
      return elsewhere + ": not moved, a passed-through device pins them";
    case MemoryVerdict::kNoNode:
      return elsewhere + ": not moved, the cgroup allows no memory there";
    case MemoryVerdict::kNoRoom:
      return elsewhere + ": not moved, no nearer node has free memory";
  }
  return {};
}

}  // namespace ka::messages
