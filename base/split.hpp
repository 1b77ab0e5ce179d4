// SPDX-License-Identifier: Apache-2.0
// Lines and fields of the kernel's text files.
#pragma once

#include <string_view>
#include <vector>

namespace ka::base {

/// Parts of `text` between separators, without empty ones.
std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace ka::base
