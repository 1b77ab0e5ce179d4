// SPDX-License-Identifier: Apache-2.0
// The guest's CPUs as its kernel numbers them, with the hardware id of each.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "guest-agent/agent/kernel.hpp"
#include "policy/facts/guest.hpp"

namespace ka::agent {

/// Remembers the hardware ids of CPUs that were online once: the kernel has those of x86 only in
/// /proc/cpuinfo, which leaves out what is offline.
class CpuReader {
 public:
  explicit CpuReader(const Roots& roots) : roots_(roots) {}

  /// By number. A CPU that was unplugged (its directory is gone) is forgotten: its number may come
  /// back as another one.
  std::vector<policy::GuestCpu> read();

 private:
  void learn_ids(const std::vector<int>& present);
  policy::GuestCpu read_one(int number) const;

  const Roots& roots_;
  std::map<int, std::uint64_t> ids_;
};

}  // namespace ka::agent
