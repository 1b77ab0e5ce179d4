// SPDX-License-Identifier: Apache-2.0
// Asks systemd to set the CPUs, memory nodes and I/O weight of a unit: directly, at its own socket,
// as systemctl does for root; no D-Bus daemon is needed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

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

}  // namespace ka::host
