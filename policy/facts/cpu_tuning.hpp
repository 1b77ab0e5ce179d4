// SPDX-License-Identifier: Apache-2.0
// CRI-O's annotations for containers that own CPUs, and what they come to. The same keys and values
// as there (pkg/annotations; internal/runtimehandlerhooks/high_performance_hooks_linux.go).
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "policy/facts/annotations.hpp"

namespace ka::policy {

/// In allow_annotations: of all of them.
inline constexpr std::string_view kTuningKey = "crio";

enum class TuningKind {
  kLoadBalancing,  ///< a cpuset partition that the kernel does not balance
  kInterrupts,     ///< the host's interrupts stay away
  kIdleStates,     ///< how long the CPUs may take to wake up
  kGovernor,       ///< who chooses their frequency
  kQuota,          ///< no CFS quota stops the container
};

struct TuningKindInfo {
  TuningKind kind;
  /// For all containers of a pod; with "/NAME" for one of them, which comes first.
  std::string_view annotation;
};

/// In the order of the enum.
inline constexpr TuningKindInfo kTuningKinds[] = {
    {TuningKind::kLoadBalancing, "cpu-load-balancing.crio.io"},
    {TuningKind::kInterrupts, "irq-load-balancing.crio.io"},
    {TuningKind::kIdleStates, "cpu-c-states.crio.io"},
    {TuningKind::kGovernor, "cpu-freq-governor.crio.io"},
    {TuningKind::kQuota, "cpu-quota.crio.io"},
};

static_assert(std::ranges::all_of(kTuningKinds, [](const TuningKindInfo& info) {
  return &info == &kTuningKinds[static_cast<std::size_t>(info.kind)];
}));

constexpr std::string_view annotation_of(TuningKind kind) {
  return kTuningKinds[static_cast<std::size_t>(kind)].annotation;
}

/// On which of a container's CPUs the host's interrupts may come.
enum class HostInterrupts {
  kEverywhere,
  kFirstCore,  ///< on its first CPU, and on those of its CPUs that share a core with that one
  kNowhere,
};

/// What becomes of a container's CPUs.
struct CpuTuning {
  bool is_isolated = false;  ///< a partition whose load is not balanced
  HostInterrupts interrupts = HostInterrupts::kEverywhere;
  std::string resume_latency;  ///< for pm_qos_resume_latency_us; empty: as it is
  std::string governor;        ///< for scaling_governor; empty: as it is
  bool has_quota = true;       ///< a CFS quota may stop what runs on them

  bool operator==(const CpuTuning&) const = default;
};

/// Whether it is, by its form, a value of scaling_governor, or empty.
bool is_governor(std::string_view text);
/// Whether it is a value of pm_qos_resume_latency_us: "n/a", or microseconds; or empty.
bool is_resume_latency(std::string_view text);

/// Whether a pod's annotation is one of them.
bool is_tuning_request(std::string_view annotation);
/// Whether one of them is.
bool requests_tuning(const Annotations& annotations);

/// The value for a container, by its name. Absent: there is none.
std::optional<std::string> requested_tuning_of(const Annotations& annotations, TuningKind kind,
                                               std::string_view container);

/// Puts a value into `tuning`. False, and nothing is changed: there is no such value.
bool apply_tuning(TuningKind kind, const std::string& value, CpuTuning& tuning);

}  // namespace ka::policy
