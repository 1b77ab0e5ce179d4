// SPDX-License-Identifier: Apache-2.0
// What a pod requests by annotations, beside its grade: resource classes (resource_class.hpp), and
// tuning of the CPUs that its containers own (cpu_tuning.hpp).
#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace ka::policy {

/// Values by annotation.
using Annotations = std::map<std::string, std::string>;

/// More of a pod are ignored.
inline constexpr std::size_t kMaxAnnotations = 128;

}  // namespace ka::policy
