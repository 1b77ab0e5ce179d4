// SPDX-License-Identifier: Apache-2.0
// The kernel's list and mask formats: whatever is read is written back the same, and a refusal
// names a place in the text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "policy/facts/id_set.hpp"
#include "tests/fuzz/require.hpp"

using ka::policy::CpuTag;
using ka::tests::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto list = ka::policy::parse_list<CpuTag>(text);
  if (list) {
    require(list->last() < ka::policy::kMaxIds);
    require(ka::policy::parse_list<CpuTag>(ka::policy::format_list(*list)) == *list);
  } else {
    require(list.error().position <= size && !list.error().reason.empty());
  }
  const auto mask = ka::policy::parse_mask<CpuTag>(text);
  if (mask) {
    require(ka::policy::parse_mask<CpuTag>(ka::policy::format_mask(*mask)) == *mask);
  } else {
    require(mask.error().position <= size && !mask.error().reason.empty());
  }
  return 0;
}
