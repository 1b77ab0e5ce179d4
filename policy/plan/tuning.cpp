// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/tuning.hpp"

#include <utility>

namespace ka::policy::plan {

ContainerTuning tune_container(const Annotations& annotations, std::string_view container,
                               const std::set<TuningKind>& allowed) {
  ContainerTuning tuned;
  for (const TuningKindInfo& info : kTuningKinds) {
    auto value = requested_tuning_of(annotations, info.kind, container);
    if (!value) continue;
    std::optional<TuningRefusal> refusal;
    if (!allowed.contains(info.kind)) {
      refusal = TuningRefusal::kNotAllowed;
    } else if (!apply_tuning(info.kind, *value, tuned.tuning)) {
      refusal = TuningRefusal::kUnknown;
    }
    tuned.requests.push_back({info.kind, *std::move(value), refusal});
  }
  return tuned;
}

CpuSet cpus_without_interrupts(const Topology& machine, HostInterrupts interrupts,
                               const CpuSet& own, const CpuSet& tuned) {
  switch (interrupts) {
    case HostInterrupts::kEverywhere:
      return {};
    case HostInterrupts::kFirstCore:
      return tuned - machine.siblings((own & machine.online()).first());
    case HostInterrupts::kNowhere:
      break;
  }
  return tuned;
}

}  // namespace ka::policy::plan
