// SPDX-License-Identifier: Apache-2.0
// Calls plan() for the sandboxes of the node, and decides when a new plan is due. The decisions
// are pure (policy/plan).
#pragma once

#include "affinity/line/node.hpp"
#include "policy/plan/plan.hpp"

namespace ka::line {

policy::plan::NodeView node_view(const Node& node, const Sandbox& sandbox);

/// The plan from what was last observed of the sandbox.
policy::plan::SandboxPlan planned(const Node& node, const Sandbox& sandbox);

/// Plans the sandbox anew. Where it is not time to write its cgroup, inside what that allows now.
void plan(Node& node, Sandbox& sandbox);

/// The sandboxes apart from `apart_from` whose plan another map of owners changes, and those in
/// `unfinished`. They are planned from what was last observed of them.
Affected changed_by_map(const Node& node, const Ids& apart_from, const Ids& unfinished);

/// Whether any sandbox has vcpu_pinning = "balanced".
bool may_level(const Options& options);

/// "balanced": a neighbour came or went, and floating vCPUs that share a CPU can have one of their
/// own.
bool should_level(const Node& node, const Sandbox& sandbox);

}  // namespace ka::line
