// SPDX-License-Identifier: Apache-2.0
// /proc/<pid>/numa_maps: the names of mapped files are the VMM's choice.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "affinity/host/memory.hpp"
#include "tests/fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto mappings = ka::host::parse_numa_maps({reinterpret_cast<const char*>(data), size});
  if (!mappings) return 0;
  for (const auto& mapping : *mappings) {
    ka::tests::require(mapping.page > 0);
    for (const auto& [node, bytes] : mapping.bytes) ka::tests::require(bytes % mapping.page == 0);
  }
  return 0;
}
