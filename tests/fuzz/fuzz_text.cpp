// SPDX-License-Identifier: Apache-2.0
// Text from outside: bytes of any kind, the first of which is the limit.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "tests/fuzz/require.hpp"

using namespace ka;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t limit = 3 + data[0];
  const std::string_view raw(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::string text = base::printable(raw, limit);
  tests::require(text.size() <= limit && base::is_printable(text, limit));
  for (const char c : text) tests::require(static_cast<unsigned char>(c) >= ' ' && c != 0x7f);
  tests::require(!base::is_id(raw) || base::is_printable(raw, base::kMaxId));
  return 0;
}
