#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "policy/plan/plan.hpp"

namespace ka::policy {
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

void add_load(std::vector<int>& load, const SandboxPlan& plan) {
  for (const VcpuPlan& vcpu : plan.vcpus) {
    if (!vcpu.container.empty() || vcpu.cpus.size() != 1) continue;
    const auto cpu = static_cast<std::size_t>(vcpu.cpus.first());
    if (load.size() <= cpu) load.resize(cpu + 1);
    ++load[cpu];
  }
}

}  // namespace

std::vector<NodeView> node_views(const Snapshot& snapshot) {
  CpuSet exclusive = snapshot.exclusive_elsewhere;
  CpuSet contested;
  std::vector<CpuSet> claims;
  for (const SandboxFacts& sandbox : snapshot.sandboxes) {
    claims.push_back(claims_of(sandbox));
    contested |= exclusive & claims.back();
    exclusive |= claims.back();
  }
  const bool told = !snapshot.shared_pool.empty();
  const CpuSet pool = (told ? snapshot.shared_pool : snapshot.topology.online()) - exclusive;
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
  std::vector<int> load;
  Plan result;
  result.sandboxes.reserve(views.size());
  for (std::size_t i = 0; i < views.size(); ++i) {
    const SandboxFacts& sandbox = snapshot.sandboxes[i];
    views[i].floating_load = load;
    result.sandboxes.push_back(plan_sandbox(views[i], sandbox, settings, before.find(sandbox)));
    if (settings.vcpu_pinning == VcpuPinning::kBalanced) add_load(load, result.sandboxes.back());
  }
  return result;
}

const SandboxPlan* Plan::find(std::string_view id) const {
  const auto found = std::ranges::lower_bound(sandboxes, id, {}, &SandboxPlan::id);
  return found == sandboxes.end() || found->id != id ? nullptr : &*found;
}

}  // namespace ka::policy
