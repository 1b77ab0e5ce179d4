// SPDX-License-Identifier: Apache-2.0
// Asks systemd to set the CPUs, memory nodes, I/O weight and CFS quota of a unit: directly, at its
// own socket, as systemctl does for root; no D-Bus daemon is needed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::host {

/// A set as the properties AllowedCPUs and AllowedMemoryNodes carry it: bit N % 8 of byte N / 8
/// (cpu_set_from_dbus() in systemd's src/shared/cpu-set-util.c).
template <typename Tag>
std::vector<std::uint8_t> to_mask(const policy::IdSet<Tag>& set) {
  std::vector<std::uint8_t> mask(static_cast<std::size_t>((set.last() + 8) / 8));
  for (const int id : set) {
    std::uint8_t& byte = mask[static_cast<std::size_t>(id) / 8];
    byte = static_cast<std::uint8_t>(byte | 1U << (static_cast<unsigned>(id) % 8));
  }
  return mask;
}

/// Sets AllowedCPUs of a unit until it stops (SetUnitProperties, runtime); empty: no limit of its
/// own. systemd writes the cgroup right after its answer. kUnavailable: no answer at `socket`;
/// kNotFound: systemd has no such unit; kTransient: no answer within half a second.
base::Result<void> set_allowed_cpus(const std::filesystem::path& socket, const std::string& unit,
                                    const policy::CpuSet& cpus);
/// The same of AllowedMemoryNodes.
base::Result<void> set_allowed_nodes(const std::filesystem::path& socket, const std::string& unit,
                                     const policy::NodeSet& nodes);
/// The same of IOWeight, 1 to 10000; absent: none of its own. systemd enables the io controller for
/// the unit where it is not.
base::Result<void> set_io_weight(const std::filesystem::path& socket, const std::string& unit,
                                 std::optional<int> weight);
/// The same of CPUQuotaPerSecUSec, microseconds of CPU time a second; absent: no quota. Its period
/// stays.
base::Result<void> set_cpu_quota(const std::filesystem::path& socket, const std::string& unit,
                                 std::optional<std::uint64_t> per_second);

/// No systemd, or no unit of that name: a cgroup that happens to be called so.
bool is_no_unit(const base::Error& error);
/// systemd answers before it has written `file`: waits for that, for 100 ms at most. kTransient: it
/// may yet come.
base::Result<void> wait_for_systemd(const base::Clock& clock, const std::filesystem::path& file,
                                    const std::function<bool()>& is_written);

}  // namespace ka::host
