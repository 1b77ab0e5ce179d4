// SPDX-License-Identifier: Apache-2.0
// CPU preferences in a pod's annotations.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "policy/allocate/options.hpp"
#include "policy/facts/expected.hpp"

namespace ka::policy::allocate {

/// Any, fast or efficient CPUs of a hybrid machine.
inline constexpr std::string_view kCpuClassAnnotation = "kata-affinity.io/cpu-class";
/// "true": CPUs under isolcpus and nohz_full first.
inline constexpr std::string_view kPreferIsolatedAnnotation = "kata-affinity.io/prefer-isolated";

using Annotations = std::map<std::string, std::string, std::less<>>;

struct CpuPreferences {
  CpuClass cpu_class = CpuClass::kAny;
  bool prefer_isolated = false;

  bool operator==(const CpuPreferences&) const = default;
};

/// The preferences for one container: "KEY.CONTAINER" where there is such an annotation, else
/// "KEY", which speaks for all containers of the pod. Others are passed over. The error names an
/// annotation whose value is invalid.
Expected<CpuPreferences, std::string> read_preferences(const Annotations& annotations,
                                                       std::string_view container);

}  // namespace ka::policy::allocate
