// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/quotas.hpp"

#include <algorithm>

#include "affinity/host/cfs_quota.hpp"
#include "affinity/host/container_process.hpp"
#include "affinity/line/sandbox.hpp"
#include "affinity/messages/terms.hpp"

namespace ka::line {
namespace {

using policy::ThreadKey;

constexpr const char* kInGuest = "in its guest it has a CFS quota";

std::vector<ThreadKey> dedicated_threads(const Sandbox& sandbox, const std::string& container) {
  std::vector<ThreadKey> threads;
  if (sandbox.plan() == nullptr) return threads;
  for (const ThreadView& thread : sandbox.threads()) {
    if (thread.facts.role != policy::Role::kVcpu) continue;
    const auto* vcpu = sandbox.plan()->find_vcpu(thread.facts.vcpu_index);
    const bool is_its_own = vcpu != nullptr && vcpu->container == container &&
                            vcpu->role == policy::plan::VcpuRole::kDedicated;
    if (is_its_own) threads.push_back(thread.facts.key);
  }
  return threads;
}

/// By what the helper said last.
std::string why_kept(const Node& node, const TunedContainer& container,
                     const host::CfsQuota& quota) {
  const board::QuotaView& view = node.board.quotas();
  if (!view.trouble.empty()) return view.trouble;
  const auto known = view.containers.find(quota_name(container));
  if (known == view.containers.end()) return messages::kHelperPending;
  return known->second.empty() ? quota.directory.string() + " has a CFS quota" : known->second;
}

std::string problem_on_host(const Node& node, const TunedContainer& container) {
  const auto threads = quota_threads(node, container);
  if (threads.empty()) return "it has no process in a cgroup of its own";
  for (const ThreadKey& thread : threads) {
    const auto quotas = host::quotas_of(node.proc, node.roots.cgroup, thread.tid);
    if (!quotas.empty()) return why_kept(node, container, quotas.front());
  }
  return {};
}

/// The runtime passes the quota on into the guest.
bool has_quota_in_guest(const Node& node, const TunedContainer& container) {
  const policy::ledger::PodRecord* pod = node.registry.find(container.pod);
  const auto record = pod->containers.find(container.id);
  return record != pod->containers.end() && record->second.facts.quota > 0;
}

/// Nothing runs in a container that is not in its guest (yet).
std::string problem_in_guest(const Node& node, const TunedContainer& container) {
  const board::GuestView* guest = node.board.guest(container.pod);
  if (guest == nullptr || !guest->connected || guest->writes.by_kata) {
    return "in its guest it has a CFS quota, which only kata-affinity-agent there could lift";
  }
  if (!guest->report) return kInGuest;
  const auto& containers = guest->report->containers;
  const auto state = std::ranges::find(containers, container.id, &policy::GuestContainerState::id);
  if (state == containers.end() || state->problem == policy::GuestProblem::kNotFound) return {};
  return state->quota_lifted ? "" : kInGuest;
}

}  // namespace

std::string quota_name(const TunedContainer& container) {
  return container.pod + '/' + container.id;
}

std::vector<ThreadKey> quota_threads(const Node& node, const TunedContainer& container) {
  const Sandbox* sandbox = node.sandboxes.find(container.pod);
  if (sandbox != nullptr) return dedicated_threads(*sandbox, container.id);
  const policy::ledger::PodRecord* pod = node.registry.find(container.pod);
  if (pod == nullptr || !node.cgroups) return {};
  const auto process =
      host::container_process(*node.cgroups, node.proc, pod->pod_uid, container.id);
  return process ? std::vector{*process} : std::vector<ThreadKey>{};
}

std::string quota_problem(const Node& node, const TunedContainer& container) {
  std::string problem = problem_on_host(node, container);
  const bool has_guest = node.sandboxes.find(container.pod) != nullptr;
  if (!problem.empty() || !has_guest || !has_quota_in_guest(node, container)) return problem;
  return problem_in_guest(node, container);
}

}  // namespace ka::line
