// SPDX-License-Identifier: Apache-2.0
// Lines of procfs: words with blanks between them.
#pragma once

#include <algorithm>
#include <string_view>

namespace ka::vmm {

/// Takes the next word off the front; empty at the end.
inline std::string_view next_word(std::string_view& text) {
  constexpr std::string_view kBlanks = " \n";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
  text.remove_prefix(word.size());
  return word;
}

}  // namespace ka::vmm
