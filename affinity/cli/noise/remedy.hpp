// SPDX-License-Identifier: Apache-2.0
// Whether what disturbs a CPU can be kept off it, and by what.
#pragma once

#include <string>
#include <string_view>

#include "affinity/cli/noise/interrupt_files.hpp"
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

/// Of a task; null: it had ended before it could be read.
Remedy remedy_for_task(const std::string& name, const TaskFacts* task);
/// Of an interrupt of a device; null: it is gone.
Remedy remedy_for_interrupt(int number, const std::string& name, const InterruptFacts* interrupt);
/// Of anything else.
Remedy remedy_for(CauseKind kind);

}  // namespace ka::cli::noise
