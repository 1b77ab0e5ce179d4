// SPDX-License-Identifier: Apache-2.0
// Messages of kubelet's PodResources API, right or wrong.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/text.hpp"
#include "shim-ext/pod_resources/answer.hpp"
#include "tests/fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ka;
  const std::string_view message(reinterpret_cast<const char*>(data), size);
  if (const auto list = pod_resources::parse_list(message)) {
    tests::require(std::ranges::is_sorted(*list));
    for (const auto& one : *list) {
      tests::require(base::is_printable(one.pod) && base::is_printable(one.container));
    }
  }
  if (const auto cpus = pod_resources::parse_allocatable(message))
    tests::require(cpus->size() >= 0);
  return 0;
}
