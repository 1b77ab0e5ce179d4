// SPDX-License-Identifier: Apache-2.0
// Parts of a cache and of the memory's bandwidth, as a configuration names them: in forms that
// goresctrl (and so containerd, CRI-O and nri-plugins) reads, too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ka::policy {

/// Bits of a cache's mask in the kernel (RESCTRL_MAX_CBM in fs/resctrl/internal.h).
inline constexpr int kMaxCacheBits = 32;

/// Part of a cache: a percentage of its ways, or its ways by number.
struct CacheShare {
  int low = 0, high = 0;   ///< percent, from and to; `high` 0: it is `mask`
  std::uint32_t mask = 0;  ///< a bit for each way

  bool is_percent() const { return high > 0; }
  bool operator==(const CacheShare&) const = default;
};

/// "50%" (the lowest half), "50-100%", "0-3" (ways), "0xf" (ways as a mask). Nothing for any other
/// text, and for a share of nothing.
std::optional<CacheShare> parse_cache_share(std::string_view text);
/// A text that parse_cache_share() reads as the same.
std::string format_share(const CacheShare& share);

/// "50%": 1 to 100.
std::optional<int> parse_bandwidth(std::string_view text);
std::string format_bandwidth(int percent);

/// What a class gives of each; what is absent is not limited.
struct RdtShares {
  std::optional<CacheShare> l3, l2;
  std::optional<int> mba;  ///< percent of the memory's bandwidth

  bool empty() const { return !l3 && !l2 && !mba; }
  bool operator==(const RdtShares&) const = default;
};

}  // namespace ka::policy
