// SPDX-License-Identifier: Apache-2.0
#include "affinity/config/near_miss.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "affinity/config/keys.hpp"

namespace ka::config {
namespace {

constexpr std::string_view kTable = "affinity";
/// Of our keys, the one that runtime-rs has in [runtime], too (kata-types, config/runtime.rs).
constexpr std::string_view kAlsoKatas = "log_level";

/// Insertions, deletions and replacements that make one of the other (Levenshtein).
std::size_t distance(std::string_view one, std::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < one.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < other.size(); ++j) {
      const std::size_t replaced = diagonal + (one[i] == other[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

bool is_near(std::string_view one, std::string_view other) {
  return distance(one, other) <= (other.size() < 6 ? 1 : 2);
}

/// In lower case, and without "kata-" or "kata_".
std::string plain(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text.starts_with("kata-") || text.starts_with("kata_") ? text.substr(5) : text;
}

std::string ours(std::string_view key) { return std::string(key) + " in [affinity]"; }

}  // namespace

std::string_view nearest_key(std::string_view name) {
  const std::string text = plain(name);
  const auto* key = std::ranges::min_element(
      kKeys, {}, [&text](const Key& one) { return distance(text, one.name); });
  return is_near(text, key->name) ? key->name : std::string_view();
}

std::string meant_at_top(std::string_view name, bool is_table) {
  if (name == kTable) return {};
  if (is_near(plain(name), kTable)) return "[affinity]";
  if (is_table) return name == "handler" ? "[affinity.handler]" : "";
  const std::string_view key = nearest_key(name);
  return key.empty() ? "" : ours(key);
}

std::string meant_in_runtime(std::string_view name) {
  if (is_near(plain(name), kTable)) return "[affinity]";
  const bool known =
      std::ranges::any_of(kKeys, [name](const Key& key) { return key.name == name; });
  return known && name != kAlsoKatas ? ours(name) : std::string();
}

}  // namespace ka::config
