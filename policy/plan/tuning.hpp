// SPDX-License-Identifier: Apache-2.0
// What a container's CPUs get of what its pod requests by CRI-O's annotations.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "policy/facts/cpu_tuning.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/facts/topology.hpp"

namespace ka::policy::plan {

/// Why a container does not have what its pod requests.
enum class TuningRefusal {
  kNotAllowed,  ///< allow_annotations, or allow_crio_annotations of its handler, does not list it
  kUnknown,     ///< there is no such value
};

struct TuningRequest {
  TuningKind kind = TuningKind::kLoadBalancing;
  std::string value;
  std::optional<TuningRefusal> refusal;  ///< absent: it is granted

  bool operator==(const TuningRequest&) const = default;
};

struct ContainerTuning {
  CpuTuning tuning;  ///< of what is granted
  std::vector<TuningRequest> requests;

  bool operator==(const ContainerTuning&) const = default;
};

/// For the container of this name. `allowed`: what its pod may request.
ContainerTuning tune_container(const Annotations& annotations, std::string_view container,
                               const std::set<TuningKind>& allowed);

/// Those of a container's CPUs that the host's interrupts are to leave. `own`: all of its CPUs,
/// whose first online one counts for HostInterrupts::kFirstCore; `tuned`: those to be tuned.
CpuSet cpus_without_interrupts(const Topology& machine, HostInterrupts interrupts,
                               const CpuSet& own, const CpuSet& tuned);

}  // namespace ka::policy::plan
