// SPDX-License-Identifier: Apache-2.0
#include "policy/facts/io_limits.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace ka::policy {
namespace {

constexpr std::string_view kUnlimited = "max";
/// MINORBITS in include/linux/kdev_t.h leaves 12 bits for the major number.
constexpr std::uint64_t kMostMajor = (1U << 12U) - 1, kMostMinor = (1U << 20U) - 1;

struct LimitName {
  std::string_view name;
  std::uint64_t most;  ///< the next one is the kernel's "max"
};
constexpr std::array<LimitName, 4> kLimitNames{{{"rbps", UINT64_MAX - 1},
                                                {"wbps", UINT64_MAX - 1},
                                                {"riops", UINT32_MAX - 1},
                                                {"wiops", UINT32_MAX - 1}}};
/// In that order; empty: not named.
using Values = std::array<std::string, kLimitNames.size()>;

/// From `least` to `most`, in the kernel's form. Absent: it is no such number.
std::optional<std::string> parse_limit(std::string_view text, std::uint64_t least,
                                       std::uint64_t most) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const bool is_one = error == std::errc() && stop == end && number >= least && number <= most;
  return is_one ? std::optional(std::to_string(number)) : std::nullopt;
}

std::vector<std::string_view> words_of(std::string_view text, char separator) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::optional<std::string> parse_disk(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto major = parse_limit(text.substr(0, colon), 0, kMostMajor);
  const auto minor = parse_limit(text.substr(colon + 1), 0, kMostMinor);
  return major && minor ? std::optional(*major + ':' + *minor) : std::nullopt;
}

/// "wbps=1000"
bool read_limit(std::string_view word, Values& values) {
  const std::size_t sign = std::min(word.find('='), word.size());
  const auto* name = std::ranges::find(kLimitNames, word.substr(0, sign), &LimitName::name);
  if (name == kLimitNames.end() || sign == word.size()) return false;
  std::string& value =
      values.at(static_cast<std::size_t>(std::distance(kLimitNames.begin(), name)));
  const std::string_view text = word.substr(sign + 1);
  const auto limit = text == kUnlimited ? std::optional(std::string(kUnlimited))
                                        : parse_limit(text, 1, name->most);
  if (!limit || !value.empty()) return false;
  value = *limit;
  return true;
}

std::string format_values(const Values& values) {
  std::string text;
  for (std::size_t i = 0; i < kLimitNames.size(); ++i) {
    text += (i == 0 ? "" : " ") + std::string(kLimitNames.at(i).name) + '=' +
            (values.at(i).empty() ? std::string(kUnlimited) : values.at(i));
  }
  return text;
}

}  // namespace

std::optional<IoLimits> parse_io_limits(std::string_view text, char separator) {
  IoLimits limits;
  for (const std::string_view line : words_of(text, separator)) {
    const auto words = words_of(line, ' ');
    const auto disk = words.size() < 2 ? std::nullopt : parse_disk(words.front());
    if (!disk) return std::nullopt;
    Values values;
    const bool are_limits = std::all_of(words.begin() + 1, words.end(), [&](std::string_view word) {
      return read_limit(word, values);
    });
    if (!are_limits || !limits.try_emplace(*disk, format_values(values)).second)
      return std::nullopt;
  }
  return limits;
}

}  // namespace ka::policy
