// SPDX-License-Identifier: Apache-2.0
#include "affinity/documents/memory.hpp"

#include <boost/json/array.hpp>

namespace ka::documents {

namespace json = boost::json;

json::object to_json(const policy::MemoryFacts& facts, const policy::plan::MemoryPlan& plan) {
  json::array nodes;
  for (const auto& [node, bytes] : policy::bytes_by_node(facts)) {
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

}  // namespace ka::documents
