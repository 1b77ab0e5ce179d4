// SPDX-License-Identifier: Apache-2.0
// persist.json of Kata, as it may be found in the middle of a write.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/text.hpp"
#include "shim-ext/kata/persist.hpp"
#include "tests/fuzz/require.hpp"

using ka::base::is_printable;
using ka::tests::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto seen = ka::kata::parse_persist({reinterpret_cast<const char*>(data), size}, "s1");
  if (!seen) return 0;
  require(seen->pod.id == "s1" && seen->vmm_pid >= 0);
  require(is_printable(seen->pod.pod_uid) && is_printable(seen->pod.pod_name));
  for (const auto& container : seen->containers) {
    require(container.sandbox == "s1");
    require(is_printable(container.spec.name));
  }
  return 0;
}
