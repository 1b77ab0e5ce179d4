// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/rdt.hpp"

#include <algorithm>

namespace ka::line {
namespace {

bool serves(const SandboxView& view, const std::string& container, int vcpu) {
  const auto& plans = view.plan.containers;
  const auto found = std::ranges::find(plans, container, &policy::plan::ContainerPlan::id);
  return found != plans.end() && found->vcpus.contains(vcpu);
}

}  // namespace

std::string rdt_problem(const SandboxView& view, const RdtVcpu& one) {
  if (view.observed) return "mode is \"observe\", nothing is written";
  if (view.released) return "the sandbox is released";
  return view.rdt.problem_of(one.key.tid, one.name);
}

std::string rdt_problem(const SandboxView& view, const policy::plan::RequestedClass& request) {
  if (request.kind != policy::ClassKind::kRdt || request.refusal) return {};
  for (const RdtVcpu& one : view.classes.rdt) {
    if (!serves(view, request.container, one.vcpu)) continue;
    if (std::string problem = rdt_problem(view, one); !problem.empty()) return problem;
  }
  return {};
}

int count_without_rdt(const SandboxView& view) {
  if (view.released) return 0;
  return static_cast<int>(std::ranges::count_if(
      view.classes.rdt, [&view](const RdtVcpu& one) { return !rdt_problem(view, one).empty(); }));
}

}  // namespace ka::line
