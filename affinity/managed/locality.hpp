// SPDX-License-Identifier: Apache-2.0
// What of the node's memory and devices counts for the place of a container.
#pragma once

#include <filesystem>

#include "policy/managed/alignment.hpp"
#include "shim-ext/nri/allocator.hpp"

namespace ka::managed {

/// Reads some files of each node, and one or two of each device. `sys` is where sysfs is mounted.
policy::managed::Locality read_locality(const std::filesystem::path& sys,
                                        const nri::Described& container);

/// Adds what the nodes have left of what is needed.
void add_room(const std::filesystem::path& sys, const policy::managed::Needs& needs,
              policy::managed::MemoryRoom& room);

}  // namespace ka::managed
