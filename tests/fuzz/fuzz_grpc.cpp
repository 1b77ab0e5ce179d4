// SPDX-License-Identifier: Apache-2.0
// A gRPC server that sends anything, cut anywhere: the first byte is the length of the pieces.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/grpc/exchange.hpp"
#include "tests/fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ka;
  if (size == 0) return 0;
  constexpr grpc::Limits kLimits{.message = 4096, .fields = 1024, .overhead = 4096};
  const std::size_t piece = std::max<std::size_t>(data[0], 1);
  std::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
  grpc::Exchange exchange({"/v1.Service/Method", {}}, kLimits);
  tests::require(!exchange.drain_output().empty());
  while (!rest.empty()) {
    const auto whole = exchange.feed(rest.substr(0, piece));
    if (!whole) return 0;
    rest.remove_prefix(std::min(piece, rest.size()));
    if (*whole) {
      tests::require(exchange.release_response().payload.size() <= kLimits.message);
      return 0;
    }
    exchange.drain_output();
  }
  return 0;
}
