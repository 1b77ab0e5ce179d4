// SPDX-License-Identifier: Apache-2.0
// How deep a TOML text nests, before it is parsed: the parser, and all that walks what it made, go
// down one call a level.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace ka::config {

/// Arrays and inline tables within each other, and parts of a dotted key or of a table's name. Kata
/// and containerd need 6.
inline constexpr int kMaxNesting = 32;

/// Where a text first nests deeper: the offset of that bracket or dot. Absent where it never does.
/// It errs on the side of finding nothing in a text that is no TOML.
std::optional<std::size_t> find_too_deep(std::string_view toml);

}  // namespace ka::config
