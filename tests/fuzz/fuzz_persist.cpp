// SPDX-License-Identifier: Apache-2.0
// persist.json of Kata, as it may be found in the middle of a write.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "shim-ext/kata/persist.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)ka::kata::parse_persist({reinterpret_cast<const char*>(data), size}, "s1");
  return 0;
}
