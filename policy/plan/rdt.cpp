// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/rdt.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <iterator>
#include <utility>

namespace ka::policy::plan {
namespace {

constexpr std::string_view kL3 = "L3", kL2 = "L2", kBandwidth = "MB";
constexpr int kAll = 100;  ///< percent
constexpr int kHalf = kAll / 2;

using Values = std::map<int, std::uint32_t>;

int base_of(std::string_view resource) { return resource == kBandwidth ? 10 : 16; }

std::string_view trim(std::string_view text) {
  const auto first = std::min(text.find_first_not_of(' '), text.size());
  text.remove_prefix(first);
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

/// What is before the separator, taken off `rest`.
std::string_view next(std::string_view& rest, char separator) {
  const std::size_t at = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return part;
}

template <typename Number>
bool read(std::string_view text, Number& into, int base) {
  text = trim(text);
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, into, base);
  return error == std::errc() && stop == end && !text.empty();
}

/// "0=ff;1=ff"
std::optional<Values> parse_values(std::string_view text, int base) {
  Values values;
  while (!text.empty()) {
    std::string_view pair = next(text, ';');
    int domain = 0;
    std::uint32_t value = 0;
    if (!read(next(pair, '='), domain, 10) || domain < 0) return std::nullopt;
    if (!read(pair, value, base) || !values.emplace(domain, value).second) return std::nullopt;
  }
  return values;
}

std::string format_value(std::uint32_t value, int base) {
  char digits[16];
  return {std::begin(digits), std::to_chars(std::begin(digits), std::end(digits), value, base).ptr};
}

std::uint32_t ways_below(int count) {
  return static_cast<std::uint32_t>((std::uint64_t{1} << count) - 1);
}

/// Two shares that meet at a percentage meet at the same way.
std::uint32_t mask_of_percent(const CacheShare& share, const CacheFacts& facts) {
  const int ways = std::popcount(facts.mask);
  const auto way_at = [ways](int percent) { return (ways * percent + kHalf) / kAll; };
  const int least = std::clamp(facts.min_bits, 1, ways);
  const int low = std::min(way_at(share.low), ways - least);
  const int high = std::max(way_at(share.high), low + least);
  return ways_below(high) & ~ways_below(low);
}

/// Ways from the lowest on, up to the first gap.
int first_run(std::uint32_t mask) { return std::countr_one(mask >> std::countr_zero(mask)); }

/// The kernel counts the first run of a sparse mask only (cbm_validate()).
Expected<std::uint32_t, RdtRefusal> mask_of(const CacheShare& share, const CacheFacts& facts) {
  if (share.is_percent()) return mask_of_percent(share, facts);
  if ((share.mask & ~facts.mask) != 0) return unexpected(RdtRefusal::kNoSuchWays);
  const int run = first_run(share.mask);
  if (!facts.sparse && run < std::popcount(share.mask)) return unexpected(RdtRefusal::kGaps);
  if (run < facts.min_bits) return unexpected(RdtRefusal::kTooFewWays);
  return share.mask;
}

/// The kernel rounds up to its step, too (bw_validate()).
Expected<std::uint32_t, RdtRefusal> bandwidth_of(int percent, const BandwidthFacts& facts) {
  if (!facts.percent) return unexpected(RdtRefusal::kNoPercent);
  const int step = std::max(facts.granularity, 1);
  const int wanted = std::max(percent, facts.min);
  return static_cast<std::uint32_t>(std::min((wanted + step - 1) / step * step, kAll));
}

/// Adds one resource; the obstacle, if there is one.
template <typename Share, typename Facts, typename Translate>
std::optional<RdtRefusal> add(Schemata& schemata, std::string_view resource,
                              const std::optional<Share>& share, const std::optional<Facts>& facts,
                              Translate translate) {
  if (!share) return std::nullopt;
  if (!facts || facts->domains.empty()) return RdtRefusal::kAbsent;
  const auto value = translate(*share, *facts);
  if (!value) return value.error();
  for (const int domain : facts->domains) schemata[std::string(resource)][domain] = *value;
  return std::nullopt;
}

}  // namespace

std::optional<Schemata> parse_schemata(std::string_view text) {
  Schemata schemata;
  while (!text.empty()) {
    std::string_view line = next(text, '\n');
    const std::string resource(trim(next(line, ':')));
    if (resource.empty()) return std::nullopt;
    if (resource != kL3 && resource != kL2 && resource != kBandwidth) continue;
    auto values = parse_values(line, base_of(resource));
    if (!values || !schemata.emplace(resource, *std::move(values)).second) return std::nullopt;
  }
  return schemata;
}

std::string format_schemata(const Schemata& schemata) {
  std::string text;
  for (const auto& [resource, values] : schemata) {
    char separator = ':';
    text += resource;
    for (const auto& [domain, value] : values) {
      text += separator + std::to_string(domain) + '=' + format_value(value, base_of(resource));
      separator = ';';
    }
    text += '\n';
  }
  return text;
}

bool holds(const Schemata& now, const Schemata& wanted) {
  return std::ranges::all_of(wanted, [&now](const auto& resource) {
    const auto found = now.find(resource.first);
    if (found == now.end()) return false;
    return std::ranges::all_of(resource.second, [&](const auto& value) {
      const auto domain = found->second.find(value.first);
      return domain != found->second.end() && domain->second == value.second;
    });
  });
}

Expected<Schemata, RdtObstacle> schemata_of(const RdtShares& shares, const RdtFacts& facts) {
  Schemata schemata;
  if (const auto why = add(schemata, kL3, shares.l3, facts.l3, mask_of)) {
    return unexpected(RdtObstacle{*why, "l3"});
  }
  if (const auto why = add(schemata, kL2, shares.l2, facts.l2, mask_of)) {
    return unexpected(RdtObstacle{*why, "l2"});
  }
  if (const auto why = add(schemata, kBandwidth, shares.mba, facts.mba, bandwidth_of)) {
    return unexpected(RdtObstacle{*why, "mba"});
  }
  return schemata;
}

}  // namespace ka::policy::plan
