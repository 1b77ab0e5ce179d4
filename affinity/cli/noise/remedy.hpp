// SPDX-License-Identifier: Apache-2.0
// Whether what disturbs a CPU can be kept off it, and by what.
#pragma once

#include <string>
#include <string_view>

#include "affinity/cli/noise/tasks.hpp"
#include "affinity/cli/noise/trace_event.hpp"

namespace ka::cli::noise {

enum class Movable { kYes, kNo, kUnknown };

/// "yes", "no", "unknown".
std::string_view movable_name(Movable movable);

struct Remedy {
  Movable movable = Movable::kUnknown;
  std::string by;  ///< by what, or why not
};

/// `task`: of a cause that is one; null: it had ended. `name`: of the cause.
Remedy remedy_for(const Cause& cause, const std::string& name, const TaskFacts* task);

}  // namespace ka::cli::noise
