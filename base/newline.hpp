// SPDX-License-Identifier: Apache-2.0
// Most files of the kernel end in a newline.
#pragma once

#include <string>

namespace ka::base {

/// `text` without newlines at its end.
inline std::string without_newline(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace ka::base
