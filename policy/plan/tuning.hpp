// SPDX-License-Identifier: Apache-2.0
// What a container's CPUs get of what its pod requests by CRI-O's annotations.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "policy/facts/cpu_tuning.hpp"

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

}  // namespace ka::policy::plan
