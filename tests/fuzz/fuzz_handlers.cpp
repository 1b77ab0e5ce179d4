// SPDX-License-Identifier: Apache-2.0
// Names of interrupt handlers are what drivers make of them.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "affinity/host/passed_through.hpp"
#include "tests/fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto handlers = ka::host::parse_handlers(text, "0000:01:00.0");
  ka::tests::require(handlers.own.empty() || text.find(handlers.own) != text.npos);
  ka::tests::require(handlers.own.size() + handlers.others.size() <= size);
  return 0;
}
