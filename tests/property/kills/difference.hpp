// SPDX-License-Identifier: Apache-2.0
// What differs between two texts, which name each thing in a line of its own.
#pragma once

#include <sstream>
#include <string>

namespace ka::tests {

/// The lines of one text that are not in the other.
inline std::string difference(const std::string& text, const std::string& other) {
  std::istringstream lines(text);
  std::string differing;
  for (std::string line; std::getline(lines, line);) {
    if (other.find(line + '\n') == std::string::npos) differing += line + "; ";
  }
  return differing;
}

}  // namespace ka::tests
