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
  const std::string elsewhere =
      size_text(plan.misplaced) + " lie elsewhere than on " + nodes_text(plan.wanted);
  switch (plan.verdict) {
    case MemoryVerdict::kAnywhere:
      return "it may lie anywhere";
    case MemoryVerdict::kInPlace:
      return "it lies on " + nodes_text(plan.wanted) + ", where its CPUs are";
    case MemoryVerdict::kMove:
      return elsewhere + (moves ? " and are moved" : " and stay: memory is not \"migrate\"");
    case MemoryVerdict::kDevice:
      return elsewhere + " and stay: a passed-through device pins them";
    case MemoryVerdict::kNoNode:
      return elsewhere + " and stay: its cgroup allows no memory there";
    case MemoryVerdict::kNoRoom:
      return elsewhere + " and stay: no nearer node has room";
  }
  return {};
}

}  // namespace ka::messages
