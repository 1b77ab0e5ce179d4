// SPDX-License-Identifier: Apache-2.0
#include "policy/facts/rdt.hpp"

#include <charconv>
#include <iterator>
#include <utility>

namespace ka::policy {
namespace {

constexpr int kAll = 100;  ///< percent
constexpr int kHex = 16;

template <typename Number>
std::optional<Number> parse(std::string_view text, int base = 10) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base);
  const bool is_digits = !text.empty() && text.front() != '-';
  return is_digits && error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

/// "A-B", A at most B.
std::optional<std::pair<int, int>> parse_range(std::string_view text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto low = parse<int>(text.substr(0, dash));
  const auto high = parse<int>(text.substr(dash + 1));
  if (!low || !high || *low > *high) return std::nullopt;
  return std::pair(*low, *high);
}

std::optional<CacheShare> percent(int low, int high) {
  if (low >= high || high > kAll) return std::nullopt;
  return CacheShare{low, high, 0};
}

std::optional<CacheShare> parse_percent(std::string_view text) {
  if (const auto range = parse_range(text)) return percent(range->first, range->second);
  const auto high = parse<int>(text);
  return high ? percent(0, *high) : std::nullopt;
}

std::optional<CacheShare> parse_ways(std::string_view text) {
  const auto range = parse_range(text);
  if (!range || range->second >= kMaxCacheBits) return std::nullopt;
  const auto below = [](int way) { return (std::uint64_t{1} << way) - 1; };
  return CacheShare{0, 0,
                    static_cast<std::uint32_t>(below(range->second + 1) & ~below(range->first))};
}

}  // namespace

std::optional<CacheShare> parse_cache_share(std::string_view text) {
  if (text.ends_with('%')) return parse_percent(text.substr(0, text.size() - 1));
  if (!text.starts_with("0x")) return parse_ways(text);
  const auto mask = parse<std::uint32_t>(text.substr(2), kHex);
  return mask && *mask != 0 ? std::optional(CacheShare{0, 0, *mask}) : std::nullopt;
}

std::string format_share(const CacheShare& share) {
  if (share.is_percent()) {
    const std::string from = share.low == 0 ? "" : std::to_string(share.low) + '-';
    return from + std::to_string(share.high) + '%';
  }
  char digits[2 * sizeof share.mask];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), share.mask, kHex).ptr;
  return "0x" + std::string(std::begin(digits), end);
}

std::optional<int> parse_bandwidth(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  const auto value = parse<int>(text.substr(0, text.size() - 1));
  return value && *value >= 1 && *value <= kAll ? value : std::nullopt;
}

std::string format_bandwidth(int percent) { return std::to_string(percent) + '%'; }

}  // namespace ka::policy
