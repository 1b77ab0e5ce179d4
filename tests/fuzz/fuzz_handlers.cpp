// SPDX-License-Identifier: Apache-2.0
// Names of interrupt handlers are what drivers make of them.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "affinity/host/passed_through.hpp"
#include "base/text.hpp"
#include "tests/fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto handlers = ka::host::parse_handlers(text, "0000:01:00.0");
  // A byte that cannot be shown becomes an escape of up to kEscape bytes.
  constexpr std::size_t kEscape = 4;
  ka::tests::require(ka::base::is_printable(handlers.own));
  ka::tests::require(ka::base::is_printable(handlers.others, kEscape * size));
  ka::tests::require(handlers.own.size() + handlers.others.size() <= kEscape * size);
  return 0;
}
