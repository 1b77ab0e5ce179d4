// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ka::base {

struct DoubledKey {
  std::string key;
  std::size_t end = 0;  ///< offset of the quote that ends its second occurrence
};

/// The first key that an object of a good JSON document has twice. RFC 8259 leaves open which of
/// the two counts, and readers differ: the author's intent cannot be known.
std::optional<DoubledKey> find_doubled_key(std::string_view json);

}  // namespace ka::base
