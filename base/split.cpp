// SPDX-License-Identifier: Apache-2.0
#include "base/split.hpp"

#include <algorithm>

namespace ka::base {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool has_part(std::string_view text, char separator, std::string_view part) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (text.substr(0, end) == part) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

}  // namespace ka::base
