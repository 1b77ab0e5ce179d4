// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace ka::base {

/// The last part of a path, as basename(1) has it of a program's: all of one without a slash.
constexpr std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

}  // namespace ka::base
