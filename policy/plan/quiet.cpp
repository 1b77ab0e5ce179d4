// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/quiet.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace ka::policy::plan {
namespace {

bool has_floor(const Topology& machine, const CpuSet& kept, const CpuSet& floor) {
  if (!floor.empty()) return (floor & machine.online()).subset_of(kept);
  return has_core(machine, kept);
}

/// "interrupt: no such file", for what the helper could not read.
std::string unseen_in(const QuietState& state) {
  std::string text;
  for (const QuietKind& kind : state.kinds) {
    if (kind.problem.empty() || kind.kind == kQuietBalancer) continue;
    text += (text.empty() ? "" : ", ") + kind.kind + ": " + kind.problem;
  }
  return text;
}

/// "machine.slice (all its CPUs would go)", for each unit that may run on the CPUs.
std::string units_on(const CpuSet& cpus, const QuietState& state) {
  std::string text;
  for (const QuietKind& kind : state.kinds) {
    if (kind.kind != kQuietUnits) continue;
    for (const QuietRest& rest : kind.left) {
      if (!rest.cpus.intersects(cpus)) continue;
      text += (text.empty() ? "" : ", ") + rest.name + " (" + rest.why + ')';
    }
  }
  return text;
}

/// Empty: the pod's name is not known.
std::string_view namespace_of(std::string_view pod_name) {
  const std::size_t slash = pod_name.find('/');
  return slash == std::string_view::npos ? std::string_view() : pod_name.substr(0, slash);
}

Grade requested(GradeRequest request) {
  if (request == GradeRequest::kRealtime) return Grade::kRealtime;
  return request == GradeRequest::kQuiet ? Grade::kQuiet : Grade::kBestEffort;
}

}  // namespace

PodGrade grade_of(const GradeFacts& pod, const QuietRules& rules) {
  PodGrade own{pod.settings.grade, {}};
  const std::string_view name = namespace_of(pod.pod_name);
  if (rules.namespaces.contains(name)) own.grade = Grade::kQuiet;
  if (rules.realtime_namespaces.contains(name)) own.grade = Grade::kRealtime;
  if (pod.request == GradeRequest::kNone) return own;
  if (pod.request == GradeRequest::kUnknown) return {own.grade, QuietObstacle{NotQuiet::kNoGrade}};
  const Grade wanted = requested(pod.request);
  if (wanted == own.grade) return own;
  if (rules.by_annotation && pod.settings.allow_grades.contains(wanted)) return {wanted, {}};
  return {own.grade,
          QuietObstacle{NotQuiet::kNotAllowed, std::string(grade_request_name(pod.request))}};
}

bool may_be_quiet(const Settings& settings, const QuietRules& rules) {
  return is_quiet(settings.grade) ||
         (rules.by_annotation && std::ranges::any_of(settings.allow_grades, is_quiet));
}

bool has_core(const Topology& machine, const CpuSet& kept) {
  return std::ranges::any_of(kept, [&](int cpu) { return machine.siblings(cpu).subset_of(kept); });
}

std::vector<QuietClaim> claims_beside_floor(const Topology& machine,
                                            const std::vector<QuietClaim>& claims,
                                            const CpuSet& held, const CpuSet& floor) {
  CpuSet kept = machine.online();
  std::set<std::string> granted;
  for (const bool is_held : {true, false}) {
    for (const QuietClaim& claim : claims) {
      if (claim.cpus.subset_of(held) != is_held) continue;
      if (!has_floor(machine, kept - claim.cpus, floor)) continue;
      kept -= claim.cpus;
      granted.insert(claim.sandbox);
    }
  }
  std::vector<QuietClaim> beside = claims;
  std::erase_if(beside, [&](const QuietClaim& claim) { return !granted.contains(claim.sandbox); });
  return beside;
}

CpuSet next_request(const std::vector<QuietClaim>& claims, const CpuSet& held, bool one_by_one) {
  CpuSet cpus;
  bool has_newcomer = false;
  for (const QuietClaim& claim : claims) {
    const bool is_new = !claim.cpus.subset_of(held);
    if (is_new && one_by_one && std::exchange(has_newcomer, true)) continue;
    cpus |= claim.cpus;
  }
  return cpus;
}

std::optional<QuietObstacle> quiet_obstacle(const CpuSet& cpus, const QuietState& state,
                                            const CpuSet& apart) {
  if (!state.problem.empty()) return QuietObstacle{NotQuiet::kProblem, state.problem};
  if (!cpus.subset_of(state.cpus)) return QuietObstacle{NotQuiet::kPending, {}};
  if (const std::string unseen = unseen_in(state); !unseen.empty()) {
    return QuietObstacle{NotQuiet::kUnseen, unseen};
  }
  if (const std::string units = units_on(cpus - apart, state); !units.empty()) {
    return QuietObstacle{NotQuiet::kUnitLeft, units};
  }
  return std::nullopt;
}

}  // namespace ka::policy::plan
