// SPDX-License-Identifier: Apache-2.0
#include "affinity/api/placement.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <map>
#include <string>

#include "affinity/messages/placement.hpp"
#include "affinity/messages/terms.hpp"

namespace ka::api {
namespace {

namespace json = boost::json;
using messages::cpus_text;
using policy::Role;

/// Not where the plan wants it: the sentence says where it should run, not where it runs.
bool is_away(const line::ThreadView& thread) { return thread.drifted() || !thread.problem.empty(); }

policy::VcpuSet vcpus_away(const line::SandboxView& view) {
  policy::VcpuSet away;
  for (const line::ThreadView& thread : view.threads) {
    if (thread.facts.role == Role::kVcpu && is_away(thread)) away.add(thread.facts.vcpu_index);
  }
  return away;
}

/// Less than the plan has where the owner of some of it is in doubt.
const policy::CpuSet& wanted(const line::SandboxView& view, const policy::plan::VcpuPlan& vcpu) {
  const auto thread = std::ranges::find_if(view.threads, [&](const line::ThreadView& one) {
    return one.facts.role == Role::kVcpu && one.facts.vcpu_index == vcpu.index && one.managed;
  });
  return thread == view.threads.end() ? vcpu.cpus : thread->wanted;
}

}  // namespace

void add_vcpu_results(json::array& results, const line::SandboxView& view, const AboutCpus& about) {
  const policy::VcpuSet away = vcpus_away(view);
  std::map<messages::Floating, policy::VcpuSet> floating;
  for (const policy::plan::VcpuPlan& vcpu : view.plan.vcpus) {
    const policy::CpuSet& cpus = wanted(view, vcpu);
    if (!vcpu.placed || !about(cpus)) continue;
    if (vcpu.role == policy::plan::VcpuRole::kDedicated) {
      results.emplace_back(messages::dedicated_text(vcpu, away.contains(vcpu.index)));
    } else {
      floating[{cpus, vcpu.container, away.contains(vcpu.index)}].add(vcpu.index);
    }
  }
  for (const auto& [key, vcpus] : floating) results.emplace_back(messages::sentence(key, vcpus));
}

void add_thread_results(json::array& results, const line::SandboxView& view,
                        const AboutCpus& about) {
  std::map<messages::Group, int> groups;
  for (const line::ThreadView& thread : view.threads) {
    if (thread.facts.role == Role::kVcpu || !about(thread.wanted)) continue;
    ++groups[{thread.facts.role, thread.wanted, is_away(thread)}];
  }
  for (const auto& [group, number] : groups)
    results.emplace_back(messages::sentence(group, number));
  for (const line::ThreadView& thread : view.threads) {
    if (!about(thread.wanted) && !about(thread.actual)) continue;
    const std::string name = "thread " + std::to_string(thread.facts.key.tid) + " (" +
                             std::string(policy::role_term(thread.facts.role)) + ")";
    if (thread.drifted()) {
      results.emplace_back(name + " may use " + cpus_text(thread.actual) + " instead of " +
                           cpus_text(thread.wanted));
    }
    if (!thread.problem.empty()) results.emplace_back(name + ": " + thread.problem);
  }
}

}  // namespace ka::api
