// SPDX-License-Identifier: Apache-2.0
#include "affinity/words/memory.hpp"

#include <boost/json/array.hpp>

namespace ka::words {
namespace {

namespace json = boost::json;
using policy::plan::MemoryVerdict;

policy::NodeBytes all_of(const policy::MemoryFacts& facts) {
  policy::NodeBytes all = facts.bound;
  for (const policy::MemoryPart& part : facts.parts) {
    for (const auto& [node, bytes] : part.placed) all[node] += bytes;
  }
  return all;
}

std::string size_text(std::uint64_t bytes) {
  return std::to_string((bytes + (1 << 19)) >> 20) + " MiB";
}

std::string nodes_text(const policy::NodeSet& nodes) {
  return (nodes.size() == 1 ? "node " : "nodes ") + policy::format_list(nodes);
}

}  // namespace

json::object to_json(const policy::MemoryFacts& facts, const policy::plan::MemoryPlan& plan) {
  json::array nodes;
  for (const auto& [node, bytes] : all_of(facts)) {
    const auto bound = facts.bound.find(node);
    nodes.push_back({{"node", node},
                     {"bytes", bytes},
                     {"bound", bound == facts.bound.end() ? 0 : bound->second}});
  }
  return {{"nodes", std::move(nodes)},
          {"wanted", policy::format_list(plan.wanted)},
          {"verdict", policy::plan::memory_verdict_name(plan.verdict)},
          {"misplaced", plan.misplaced},
          {"device", facts.device}};
}

std::string memory_text(const policy::MemoryFacts& facts) {
  std::string text;
  for (const auto& [node, bytes] : all_of(facts)) {
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

}  // namespace ka::words
