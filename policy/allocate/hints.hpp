// SPDX-License-Identifier: Apache-2.0
// Topology hints and their merge: on which NUMA nodes shall a container's CPUs, memory and devices
// lie, given the node sets that each of their managers prefers?
//
// The answers are those of kubelet's topology manager (policy.go, HintMerger), but not its way: it
// looks at every permutation of one hint from each resource. Its order of preference is total, so
// only the distinct intersections count, and those are found one resource after the other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policy/allocate/options.hpp"
#include "policy/facts/expected.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::policy::allocate {

/// At most this many NUMA nodes, as in kubelet. Their ids may be any.
inline constexpr int kMaxHintNodes = 64;
/// The least that max-allowable-numa-nodes may be (topologymanager/policy_options.go).
inline constexpr int kLeastMaxNodes = 8;

struct Hint {
  std::optional<NodeSet> affinity;  ///< absent: any node
  bool preferred = false;

  bool operator==(const Hint&) const = default;
};

/// A provider's hints for one resource.
struct ResourceHints {
  std::string resource;
  /// Absent: no preference. Empty: no set of nodes suits.
  std::optional<std::vector<Hint>> hints;
};

/// Empty: the provider has no preference.
using ProviderHints = std::vector<ResourceHints>;

struct HintProblem {
  HintPolicy policy = HintPolicy::kBestEffort;
  NodeSet nodes;
  std::vector<ProviderHints> providers;
  /// prefer-closest-numa-nodes: of equally wide sets, the one whose nodes are the closest together.
  bool prefer_closest = false;
  std::vector<std::vector<int>> distances;  ///< rows in the order of `nodes`; for prefer_closest
  /// max-allowable-numa-nodes: machines with more are refused, and so is a limit below
  /// kLeastMaxNodes. Absent: no limit, since the merge needs none. Policy none has no options.
  std::optional<int> max_nodes;
  /// Ours (kubernetes#106270), for best-effort: where not all resources can be aligned, a preferred
  /// hint of the resource "cpu" wins over the hints of all others.
  bool prefer_cpu_alignment = false;
};

struct MergedHint {
  std::optional<NodeSet> affinity;
  bool preferred = false;
  bool admit = false;

  bool operator==(const MergedHint&) const = default;
};

/// Errors describe what is wrong with the problem in a sentence: too many nodes, distances that do
/// not fit, a machine with more nodes than max-allowable-numa-nodes.
Expected<MergedHint, std::string> merge_hints(const HintProblem& problem);

}  // namespace ka::policy::allocate
