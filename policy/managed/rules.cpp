// SPDX-License-Identifier: Apache-2.0
#include "policy/managed/rules.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace ka::policy::managed {
namespace {

constexpr std::string_view kOwnAnnotation = "kata-affinity.io/cpu-manager";
constexpr std::string_view kCraneAnnotation = "qos.gocrane.io/cpu-manager";

constexpr std::array<std::pair<CpuUse, std::string_view>, 3> kClasses{{
    {CpuUse::kNone, "none"},
    {CpuUse::kExclusive, "exclusive"},
    {CpuUse::kShare, "share"},
}};

using Kind = Problem::Kind;

constexpr std::array<std::pair<Kind, std::string_view>, 10> kProblems{{
    {Kind::kUnknownClass, "unknown-class"},
    {Kind::kNotAllowed, "not-allowed"},
    {Kind::kNoLimit, "no-limit"},
    {Kind::kNotWhole, "not-whole"},
    {Kind::kNotEnough, "not-enough"},
    {Kind::kNotWholeCores, "not-whole-cores"},
    {Kind::kNotEnoughWholeCores, "not-enough-whole-cores"},
    {Kind::kNotAligned, "not-aligned"},
    {Kind::kOffline, "offline"},
    {Kind::kInfra, "infra"},
}};

/// In tables of values and their names.
template <typename Table>
auto by_name(const Table& table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &Table::value_type::second);
  return found == table.end() ? std::nullopt : std::optional(found->first);
}

template <typename Table, typename Value>
std::string_view name_of(const Table& table, const Value& value) {
  return std::ranges::find(table, value, &Table::value_type::first)->second;
}

std::string namespace_of(const std::string& pod_name) {
  return pod_name.substr(0, pod_name.find('/'));
}

/// What the node's configuration says of a container, whatever its pod asks for.
CpuUse configured_class(const Candidate& candidate, const Rules& rules) {
  const auto found = rules.by_namespace.find(namespace_of(candidate.pod_name));
  if (found != rules.by_namespace.end()) return found->second;
  return candidate.guaranteed ? rules.guaranteed : CpuUse::kNone;
}

Verdict failed(Problem problem) { return {.problem = problem}; }

/// A class that the pod itself named must fit; where the configuration gives one, it is for those
/// containers that it fits.
Verdict sized(CpuUse use, const Candidate& candidate, bool requested) {
  if (use == CpuUse::kNone) return {};
  const auto cpus = whole_cpus(candidate.quota, candidate.period);
  if (cpus) return {.use = use, .cpus = *cpus};
  return requested ? failed(cpus.error()) : Verdict{};
}

}  // namespace

std::string_view class_name(CpuUse use) { return name_of(kClasses, use); }

std::optional<CpuUse> parse_class(std::string_view name) { return by_name(kClasses, name); }

std::vector<std::string> class_annotations(std::string_view container) {
  const std::string own(kOwnAnnotation);
  return {own + '.' + std::string(container), own, std::string(kCraneAnnotation)};
}

bool is_class_annotation(std::string_view key) {
  if (key == kCraneAnnotation || key == kOwnAnnotation) return true;
  return key.starts_with(kOwnAnnotation) && key[kOwnAnnotation.size()] == '.';
}

std::string_view problem_name(Problem::Kind kind) { return name_of(kProblems, kind); }

std::optional<Problem::Kind> parse_problem(std::string_view name) {
  return by_name(kProblems, name);
}

Problem to_problem(const allocate::Refusal& refusal) {
  using Reason = allocate::Refusal::Reason;
  const auto kind = refusal.reason == Reason::kNotWholeCores         ? Kind::kNotWholeCores
                    : refusal.reason == Reason::kNotEnoughWholeCores ? Kind::kNotEnoughWholeCores
                                                                     : Kind::kNotEnough;
  return {kind, refusal.requested, refusal.available};
}

Expected<int, Problem> whole_cpus(std::int64_t quota, std::int64_t period) {
  if (quota <= 0 || period <= 0) return unexpected(Problem{Kind::kNoLimit});
  if (quota % period != 0) return unexpected(Problem{Kind::kNotWhole});
  return static_cast<int>(std::min<std::int64_t>(quota / period, policy::kMaxIds));
}

Verdict classify(const Candidate& candidate, const Rules& rules) {
  if (rules.infra_namespaces.contains(namespace_of(candidate.pod_name)) && !rules.infra.empty()) {
    return {.infra = true};
  }
  const CpuUse configured = configured_class(candidate, rules);
  if (!candidate.requested) return sized(configured, candidate, false);
  const auto use = parse_class(*candidate.requested);
  if (!use) return failed({Kind::kUnknownClass});
  if (*use != configured && !rules.allowed.contains(*use)) return failed({Kind::kNotAllowed});
  return sized(*use, candidate, true);
}

}  // namespace ka::policy::managed
