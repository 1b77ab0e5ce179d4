// SPDX-License-Identifier: Apache-2.0
// Damage as memory and disks make it.
#pragma once

#include <cstddef>
#include <string>

#include "tests/catch.hpp"

namespace ka::tests {

/// Fails for each bit without which, or with which, `is_refused` lets the text pass.
template <typename IsRefused>
void for_each_flipped_bit(const std::string& good, const IsRefused& is_refused) {
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string text = good;
    text[bit / 8] = static_cast<char>(static_cast<unsigned char>(text[bit / 8]) ^ (1U << bit % 8));
    if (is_refused(text)) continue;
    CAPTURE(text);
    FAIL_CHECK("bit " << bit);
  }
}

}  // namespace ka::tests
