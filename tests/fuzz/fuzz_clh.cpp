// SPDX-License-Identifier: Apache-2.0
// A Cloud Hypervisor whose API says anything, cut anywhere: the first byte is the length of the
// pieces.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/http/exchange.hpp"
#include "tests/fuzz/require.hpp"
#include "vmm/clh/vm_info.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ka;
  if (size == 0) return 0;
  const std::size_t piece = std::max<std::size_t>(data[0], 1);
  std::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
  http::ResponseReader answer;
  while (!rest.empty()) {
    const auto whole = answer.feed(rest.substr(0, piece));
    if (!whole) return 0;
    rest.remove_prefix(std::min(piece, rest.size()));
    if (!*whole) continue;
    tests::require(answer.status() >= 0 && answer.status() <= 999);
    const auto info = clh::read_vm_info(answer.body());
    if (info) tests::require(clh::to_facts(*info).vcpus.size() == std::size_t(info->vcpus));
    return 0;
  }
  return 0;
}
