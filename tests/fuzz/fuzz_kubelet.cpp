// SPDX-License-Identifier: Apache-2.0
// kubelet's cpu_manager_state, as it may be found in the middle of a write or after a crash.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "shim-ext/watch/kubelet_state.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)ka::watch::parse_kubelet_state({reinterpret_cast<const char*>(data), size});
  return 0;
}
