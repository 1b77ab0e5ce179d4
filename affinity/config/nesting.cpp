// SPDX-License-Identifier: Apache-2.0
#include "affinity/config/nesting.hpp"

#include <algorithm>

namespace ka::config {
namespace {

constexpr std::string_view kThree[] = {"\"\"\"", "'''"};

/// The end of a string that is written with `quote` and begins at `start`, behind it.
std::size_t end_of_string(std::string_view toml, std::size_t start, std::string_view quote,
                          bool escapes) {
  std::size_t at = start + quote.size();
  while (at < toml.size() && !toml.substr(at).starts_with(quote)) {
    // A string of one line that is not closed there is an error of its own.
    if (quote.size() == 1 && toml[at] == '\n') return at;
    const std::size_t step = escapes && toml[at] == '\\' ? 2 : 1;
    at += step;
  }
  return std::min(at + quote.size(), toml.size());
}

/// The end of a comment or string that begins at `start`; `start` where none does.
std::size_t skip(std::string_view toml, std::size_t start) {
  const std::string_view rest = toml.substr(start);
  if (rest.starts_with('#')) return std::min(toml.find('\n', start), toml.size());
  for (const std::string_view quote : kThree) {
    if (rest.starts_with(quote)) return end_of_string(toml, start, quote, quote[0] == '"');
  }
  if (rest.starts_with('"')) return end_of_string(toml, start, "\"", true);
  return rest.starts_with('\'') ? end_of_string(toml, start, "'", false) : start;
}

}  // namespace

std::optional<std::size_t> find_too_deep(std::string_view toml) {
  int brackets = 0;
  int dots = 0;  ///< of the key that is being read
  for (std::size_t at = 0; at < toml.size();) {
    const std::size_t behind = skip(toml, at);
    if (behind != at) {
      at = behind;
      continue;
    }
    const char c = toml[at];
    if (c == '[' || c == '{') ++brackets;
    if ((c == ']' || c == '}') && brackets > 0) --brackets;
    dots = c == '.'                                                         ? dots + 1
           : std::string_view("\n=,[]{}").find(c) != std::string_view::npos ? 0
                                                                            : dots;
    if (brackets > kMaxNesting || dots >= kMaxNesting) return at;
    ++at;
  }
  return std::nullopt;
}

}  // namespace ka::config
