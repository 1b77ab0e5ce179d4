// SPDX-License-Identifier: Apache-2.0
#include "policy/managed/alignment.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "policy/allocate/cpu_hints.hpp"

namespace ka::policy::managed {
namespace {

using allocate::Hint;
using allocate::HintPolicy;
using allocate::ProviderHints;

NodeSet nodes_of(const allocate::Machine& machine) {
  NodeSet nodes;
  for (const auto& node : machine.groups(allocate::CpuLevel::kNode)) nodes.add(node.id);
  return nodes;
}

ProviderHints provider(std::string resource, std::vector<Hint> hints) {
  return {{std::move(resource), std::move(hints)}};
}

std::vector<ProviderHints> providers_of(const AlignmentProblem& problem, const Needs& needs,
                                        const MemoryRoom& room) {
  std::vector<ProviderHints> providers;
  providers.push_back(provider("cpu", cpu_hints(problem.machine, {.available = problem.available,
                                                                  .reusable = problem.former,
                                                                  .cpus = problem.cpus,
                                                                  .options = problem.options})));
  for (const auto& [page, bytes] : needs.memory) {
    const auto memory = room.find(page);
    if (bytes == 0 || memory == room.end()) continue;
    providers.push_back(provider("memory-" + std::to_string(page),
                                 memory_hints(problem.machine, memory->second, bytes)));
  }
  for (const NodeSet& device : needs.devices) {
    auto hints = device_hints(problem.machine, device);
    if (!hints.empty()) providers.push_back(provider("device", std::move(hints)));
  }
  return providers;
}

}  // namespace

allocate::MergedHint align(const AlignmentProblem& problem, const Needs& needs,
                           const MemoryRoom& room) {
  const auto merged =
      allocate::merge_hints({.policy = problem.policy,
                             .nodes = nodes_of(problem.machine),
                             .providers = providers_of(problem, needs, room),
                             .distances = {},
                             .max_nodes = {},
                             .prefer_cpu_alignment = problem.policy == HintPolicy::kBestEffort});
  // Above kMaxHintNodes no hints can be merged.
  const bool admits =
      problem.policy == HintPolicy::kNone || problem.policy == HintPolicy::kBestEffort;
  return merged ? *merged
                : allocate::MergedHint{.affinity = {}, .preferred = false, .admit = admits};
}

bool has_room(const NodeSet& nodes, const Needs& needs, const MemoryRoom& room) {
  return std::ranges::all_of(needs.memory, [&](const auto& need) {
    const auto memory = room.find(need.first);
    if (memory == room.end()) return need.second == 0;
    std::uint64_t missing = need.second;
    for (const auto& [node, bytes] : memory->second.free) {
      if (nodes.contains(node)) missing -= std::min(missing, bytes);
    }
    return missing == 0;
  });
}

}  // namespace ka::policy::managed
