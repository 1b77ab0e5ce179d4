// SPDX-License-Identifier: Apache-2.0
// Programs that are known to change where threads of others may run, by the names that the kernel
// has for them (comm, 15 characters).
#pragma once

#include <string>
#include <string_view>

#include "base/process.hpp"

namespace ka::host {

inline constexpr std::string_view kNumad = "numad";
inline constexpr std::string_view kTuned = "tuned";
inline constexpr std::string_view kNriResourcePolicy = "nri-resource-po";
inline constexpr std::string_view kDraDriver = "dracpu";
inline constexpr std::string_view kKoordlet = "koordlet";
inline constexpr std::string_view kIrqbalance = "irqbalance";

/// Those that run now and change masks or cpusets of threads: "numad (pid 812)"; empty: none.
std::string running_movers(const base::ProcFs& proc);
/// The same for interrupts.
std::string running_interrupt_movers(const base::ProcFs& proc);

}  // namespace ka::host
