// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/flags.hpp"

#include <iterator>

namespace ka::cli::selftest {

std::string flag_value(const std::vector<std::string>& words, const std::string& name) {
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (word->starts_with(name + '=')) return word->substr(name.size() + 1);
    if (*word == name && std::next(word) != words.end()) return *std::next(word);
  }
  return {};
}

}  // namespace ka::cli::selftest
