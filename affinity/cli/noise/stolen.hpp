// SPDX-License-Identifier: Apache-2.0
// Time that a hypervisor below this machine took of its CPUs (/proc/stat, proc(5)).
#pragma once

#include <chrono>
#include <filesystem>
#include <map>

namespace ka::cli::noise {

/// By CPU, as far as that hypervisor says so. The kernel counts it in ticks of 10 ms.
using Stolen = std::map<int, std::chrono::milliseconds>;

/// Since the boot. Empty where it cannot be read.
Stolen read_stolen(const std::filesystem::path& proc);

/// What came between two readings.
Stolen since(const Stolen& before, const Stolen& now);

}  // namespace ka::cli::noise
