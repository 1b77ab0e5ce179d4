// SPDX-License-Identifier: Apache-2.0
// What tests ask of a text.
#pragma once

#include <string>
#include <string_view>

namespace ka::tests {

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// A file of ours as versions before the checksum (base/json/checksum.hpp) wrote it: tests change
/// it by hand.
inline std::string without_checksum(const std::string& text) {
  return text.substr(0, text.rfind(",\"checksum\":")) + "}\n";
}

}  // namespace ka::tests
