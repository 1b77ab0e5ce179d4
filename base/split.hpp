// SPDX-License-Identifier: Apache-2.0
// Lines and fields of the kernel's text files.
#pragma once

#include <string_view>
#include <vector>

namespace ka::base {

/// Parts of `text` between separators, without empty ones.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Whether one of them is `part`, which is not empty.
bool has_part(std::string_view text, char separator, std::string_view part);

}  // namespace ka::base
