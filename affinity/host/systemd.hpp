// SPDX-License-Identifier: Apache-2.0
// Asks systemd to set the CPUs of a unit: directly, at its own socket, as systemctl
// does for root; no D-Bus daemon is needed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::host {

/// A set as the property AllowedCPUs carries it: bit N % 8 of byte N / 8 (cpu_set_from_dbus() in
/// systemd's src/shared/cpu-set-util.c).
std::vector<std::uint8_t> to_cpu_mask(const policy::CpuSet& cpus);

/// Sets AllowedCPUs of a unit until it stops (SetUnitProperties, runtime); empty: no limit of its
/// own. systemd writes the cgroup right after its answer. kUnavailable: no answer at `socket`;
/// kNotFound: systemd has no such unit; kTransient: no answer within half a second.
base::Result<void> set_allowed_cpus(const std::filesystem::path& socket, const std::string& unit,
                                    const policy::CpuSet& cpus);

}  // namespace ka::host
