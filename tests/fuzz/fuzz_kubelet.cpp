// SPDX-License-Identifier: Apache-2.0
// kubelet's cpu_manager_state, as it may be found in the middle of a write or after a crash.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/text.hpp"
#include "shim-ext/watch/kubelet_state.hpp"
#include "tests/fuzz/require.hpp"

using ka::tests::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto state = ka::watch::parse_kubelet_state({reinterpret_cast<const char*>(data), size});
  if (!state) return 0;
  require(ka::base::is_printable(state->policy));
  if (!state->seen.claims) return 0;
  require(std::ranges::is_sorted(*state->seen.claims));
  for (const auto& claim : *state->seen.claims) {
    require(!claim.cpus.empty());
    require(ka::base::is_printable(claim.pod_uid) && ka::base::is_printable(claim.container));
  }
  return 0;
}
