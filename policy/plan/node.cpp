// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "policy/plan/plan.hpp"

namespace ka::policy::plan {
namespace {

/// The CPUs that a sandbox holds exclusively, those of exited containers included: they stay
/// reserved until the container is removed.
CpuSet claims_of(const SandboxFacts& sandbox) {
  CpuSet cpus;
  for (const ContainerFacts& container : sandbox.containers) {
    if (container.exclusive) cpus |= container.cpus;
  }
  return cpus;
}

/// Finds the previous plan of a sandbox by its pod, else by its id.
class PreviousPlans {
 public:
  explicit PreviousPlans(const Plan* previous) {
    if (previous == nullptr) return;
    for (const SandboxPlan& plan : previous->sandboxes) {
      by_id_.emplace(plan.id, &plan);
      if (!plan.pod_uid.empty()) by_pod_.emplace(plan.pod_uid, &plan);
    }
  }

  const SandboxPlan* find(const SandboxFacts& sandbox) const {
    if (const auto found = by_pod_.find(sandbox.pod_uid); found != by_pod_.end()) {
      return found->second;
    }
    const auto found = by_id_.find(sandbox.id);
    return found == by_id_.end() ? nullptr : found->second;
  }

 private:
  std::unordered_map<std::string_view, const SandboxPlan*> by_id_, by_pod_;
};

bool floats_on_one(const VcpuPlan& vcpu) {
  return vcpu.role == VcpuRole::kFloating && vcpu.cpus.size() == 1;
}

int load_at(const std::vector<int>& load, int cpu) {
  const auto at = static_cast<std::size_t>(cpu);
  return at < load.size() ? load[at] : 0;
}

void change_floating_load(std::vector<int>& load, const SandboxPlan& plan, int by) {
  for (const VcpuPlan& vcpu : plan.vcpus) {
    if (!floats_on_one(vcpu)) continue;
    const auto cpu = static_cast<std::size_t>(vcpu.cpus.first());
    if (load.size() <= cpu) load.resize(cpu + 1);
    load[cpu] += by;
  }
}

/// Of all sandboxes, where they were: those that are planned first leave room for the others.
std::vector<int> load_before(const Snapshot& snapshot, const PreviousPlans& before) {
  std::vector<int> load;
  for (const SandboxFacts& sandbox : snapshot.sandboxes) {
    const SandboxPlan* plan = before.find(sandbox);
    if (plan != nullptr) change_floating_load(load, *plan, 1);
  }
  return load;
}

/// The less even, the more.
int unevenness(std::vector<int> load, const SandboxPlan& plan) {
  change_floating_load(load, plan, 1);
  return std::inner_product(load.begin(), load.end(), load.begin(), 0);
}

/// Plans a sandbox again that is crowded. True: the node is more even.
bool level_one(NodeView& view, const SandboxFacts& sandbox, const Settings& settings,
               const SandboxPlan* previous, SandboxPlan& own) {
  if (!crowded(view, own)) return false;
  view.current = &own;
  SandboxPlan again = plan_sandbox(view, sandbox, settings, previous);
  const std::vector<int>& others = view.floating_load;
  if (unevenness(others, again) >= unevenness(others, own)) return false;
  own = std::move(again);
  return true;
}

/// Every change makes the node more even, so this ends.
void level(const Snapshot& snapshot, std::vector<NodeView>& views, const Settings& settings,
           const PreviousPlans& before, Plan& result) {
  std::vector<int> load;
  for (const SandboxPlan& plan : result.sandboxes) change_floating_load(load, plan, 1);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t i = 0; i < views.size(); ++i) {
      const SandboxFacts& sandbox = snapshot.sandboxes[i];
      SandboxPlan& own = result.sandboxes[i];
      change_floating_load(load, own, -1);
      views[i].floating_load = load;
      moved |= level_one(views[i], sandbox, settings, before.find(sandbox), own);
      change_floating_load(load, own, 1);
    }
  }
}

}  // namespace

void add_floating_load(std::vector<int>& load, const SandboxPlan& plan) {
  change_floating_load(load, plan, 1);
}

bool crowded(const NodeView& node, const SandboxPlan& plan) {
  if (plan.housekeeping.empty()) return false;
  std::vector<int> load = node.floating_load;
  add_floating_load(load, plan);
  int least = load_at(load, plan.housekeeping.first());
  for (const int cpu : plan.housekeeping) least = std::min(least, load_at(load, cpu));
  return std::ranges::any_of(plan.vcpus, [&](const VcpuPlan& vcpu) {
    return vcpu.container.empty() && floats_on_one(vcpu) &&
           load_at(load, vcpu.cpus.first()) > least + 1;
  });
}

std::vector<NodeView> node_views(const Snapshot& snapshot) {
  CpuSet exclusive = snapshot.exclusive_elsewhere;
  CpuSet contested;
  std::vector<CpuSet> claims;
  for (const SandboxFacts& sandbox : snapshot.sandboxes) {
    claims.push_back(claims_of(sandbox));
    contested |= exclusive & claims.back();
    exclusive |= claims.back();
  }
  const bool reported = !snapshot.shared_pool.empty();
  const CpuSet pool = (reported ? snapshot.shared_pool : snapshot.topology.online()) - exclusive;
  std::vector<NodeView> views;
  views.reserve(claims.size());
  for (const CpuSet& own : claims) {
    views.push_back({snapshot.topology, pool, (exclusive - own) | contested, {}});
  }
  return views;
}

Plan plan(const Snapshot& snapshot, const Settings& settings, const Plan* previous) {
  const PreviousPlans before(previous);
  std::vector<NodeView> views = node_views(snapshot);
  const bool balanced = settings.vcpu_pinning == VcpuPinning::kBalanced;
  std::vector<int> load = balanced ? load_before(snapshot, before) : std::vector<int>{};
  Plan result;
  result.sandboxes.reserve(views.size());
  for (std::size_t i = 0; i < views.size(); ++i) {
    const SandboxFacts& sandbox = snapshot.sandboxes[i];
    const SandboxPlan* own = before.find(sandbox);
    if (balanced && own != nullptr) change_floating_load(load, *own, -1);
    views[i].floating_load = load;
    result.sandboxes.push_back(plan_sandbox(views[i], sandbox, settings, own));
    if (balanced) add_floating_load(load, result.sandboxes.back());
  }
  if (balanced) level(snapshot, views, settings, before, result);
  return result;
}

const SandboxPlan* Plan::find(std::string_view id) const {
  const auto found = std::ranges::lower_bound(sandboxes, id, {}, &SandboxPlan::id);
  return found == sandboxes.end() || found->id != id ? nullptr : &*found;
}

}  // namespace ka::policy::plan
