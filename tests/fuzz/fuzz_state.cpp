// SPDX-License-Identifier: Apache-2.0
// A state file may be cut short or damaged: it is refused, or what it holds is written back the
// same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "affinity/state/store.hpp"
#include "tests/fuzz/require.hpp"

using ka::tests::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string kBoot = "5f0f1c2e-0000-4000-8000-000000000000";
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto saved = ka::state::from_text(text, kBoot)) {
    const auto again = ka::state::from_text(ka::state::to_text(*saved, kBoot), kBoot);
    require(again && *again == *saved);
  }
  return 0;
}
