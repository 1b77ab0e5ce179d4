// SPDX-License-Identifier: Apache-2.0
// Reads a text from its beginning: releases of kernels, options of VMMs.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>

namespace ka::policy {

/// The number at the beginning of `text`, which is removed from it. Absent: it begins with none, or
/// with one that no int holds.
inline std::optional<int> consume_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace ka::policy
