// SPDX-License-Identifier: Apache-2.0
// The machines recorded in shared/machines: sysfs trees of real ones, read where they are.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "policy/facts/topology.hpp"

namespace ka::test {

struct RecordedMachine {
  std::string name;  ///< of the archive
  policy::Topology topology;
};

/// $KATA_AFFINITY_MACHINES, else the nearest shared/machines beside the checkout or above it; empty
/// where there is none.
std::filesystem::path recorded_machines_directory();

/// Unpacks one archive below `into`; the directory in it that holds sys/. Throws where it cannot be
/// unpacked.
std::filesystem::path unpack_machine(const std::filesystem::path& archive,
                                     const std::filesystem::path& into);

/// All of them, by name. Empty, and "SKIPPED:" is printed, where there are none.
std::vector<RecordedMachine> recorded_machines();

}  // namespace ka::test
