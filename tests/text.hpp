// SPDX-License-Identifier: Apache-2.0
// What tests ask of a text.
#pragma once

#include <string>
#include <string_view>

namespace ka::tests {

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace ka::tests
