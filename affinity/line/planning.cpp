// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/planning.hpp"

#include <algorithm>
#include <utility>

#include "affinity/line/sandbox.hpp"
#include "policy/plan/resource_classes.hpp"

namespace ka::line {
namespace {

using policy::plan::SandboxPlan;

bool is_balanced(const policy::plan::Settings& settings) {
  return settings.vcpu_pinning == policy::plan::VcpuPinning::kBalanced;
}

/// CPUs that containers of other pods may own.
policy::CpuSet doubted_to(const Node& node, const Sandbox& sandbox) {
  return node.ledger().doubted_to_others(sandbox.id(), node.topology.online());
}

policy::plan::ClassPlan planned_classes(const Node& node, const Sandbox& sandbox) {
  const policy::ledger::PodRecord& pod = node.pod_of(sandbox);
  const std::string& own = node.options.quiet.realtime_rdtclass;
  const bool has_own = !own.empty() && node.grade_for(pod).grade == policy::plan::Grade::kRealtime;
  if (!policy::requests_classes(pod.annotations) && !has_own) return {};
  return policy::plan::plan_classes(
      *sandbox.plan(), policy::ledger::to_sandbox_facts(pod).containers, pod.annotations,
      node.options.classes, has_own ? own : std::string());
}

}  // namespace

policy::plan::NodeView node_view(const Node& node, const Sandbox& sandbox) {
  const policy::ledger::Ledger& ledger = node.ledger();
  policy::plan::NodeView view{node.topology,
                              ledger.shared_pool(node.topology.online()),
                              node.foreign_to(sandbox),
                              {},
                              ledger.exclusive_to(sandbox.id())};
  if (is_balanced(node.settings_for(node.pod_of(sandbox)))) {
    view.floating_load = node.sandboxes.floating_load_beside(sandbox);
  }
  return view;
}

SandboxPlan planned(const Node& node, const Sandbox& sandbox) {
  const policy::ledger::PodRecord& pod = node.pod_of(sandbox);
  return policy::plan::plan_sandbox(node_view(node, sandbox), sandbox.facts(pod),
                                    node.settings_for(pod), sandbox.plan());
}

void plan(Node& node, Sandbox& sandbox) {
  SandboxPlan fresh = planned(node, sandbox);
  if (!sandbox.keeper().accepts(fresh.cgroup, node.foreign_to(sandbox), node.clock.now())) {
    fresh = planned(node, sandbox);
  }
  node.sandboxes.set_plan(sandbox, std::move(fresh), doubted_to(node, sandbox));
  sandbox.classes().set_plan(planned_classes(node, sandbox));
}

Affected changed_by_map(const Node& node, const Ids& apart_from, const Ids& unfinished) {
  Affected changed;
  for (const auto& [id, sandbox] : node.sandboxes) {
    if (apart_from.contains(id)) continue;
    const SandboxPlan* before = sandbox->plan();
    const bool as_planned = before != nullptr && !unfinished.contains(id) &&
                            sandbox->doubted() == doubted_to(node, *sandbox);
    if (!as_planned || planned(node, *sandbox) != *before) changed.push_back(sandbox.get());
  }
  return changed;
}

bool may_level(const Options& options) {
  return is_balanced(options.settings) ||
         std::ranges::any_of(options.by_handler,
                             [](const auto& entry) { return is_balanced(entry.second); });
}

bool should_level(const Node& node, const Sandbox& sandbox) {
  const SandboxPlan* plan = sandbox.plan();
  return plan != nullptr && is_balanced(node.settings_for(node.pod_of(sandbox))) &&
         policy::plan::crowded(node_view(node, sandbox), *plan) && planned(node, sandbox) != *plan;
}

}  // namespace ka::line
