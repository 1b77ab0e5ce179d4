// SPDX-License-Identifier: Apache-2.0
// What a class's shares are on one machine: the text that the kernel's resctrl takes
// (Documentation/filesystems/resctrl.rst). Pure, as plan() is.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/facts/expected.hpp"
#include "policy/facts/rdt.hpp"

namespace ka::policy::plan {

/// A cache as info/ describes it.
struct CacheFacts {
  std::uint32_t mask = 0;  ///< cbm_mask: all ways
  int min_bits = 1;        ///< min_cbm_bits
  bool sparse = false;     ///< sparse_masks: a mask may have gaps
  std::vector<int> domains;

  bool operator==(const CacheFacts&) const = default;
};

/// The memory's bandwidth.
struct BandwidthFacts {
  int min = 0;          ///< min_bandwidth, percent
  int granularity = 1;  ///< bandwidth_gran, percent
  bool percent = true;  ///< false: the kernel takes no percentages here
  std::vector<int> domains;

  bool operator==(const BandwidthFacts&) const = default;
};

struct RdtFacts {
  std::optional<CacheFacts> l3, l2;
  std::optional<BandwidthFacts> mba;
  int groups = 0;  ///< num_closids: how many there can be, that of all others among them

  bool operator==(const RdtFacts&) const = default;
};

/// Values by resource ("L3", "L2", "MB") and domain: a group's schemata. Of other resources
/// nothing is kept.
using Schemata = std::map<std::string, std::map<int, std::uint32_t>>;

/// Nothing for a text that is none.
std::optional<Schemata> parse_schemata(std::string_view text);
/// "L3:0=f;1=f\nMB:0=50;1=50\n"
std::string format_schemata(const Schemata& schemata);
/// Whether all that is wanted is so.
bool holds(const Schemata& now, const Schemata& wanted);

/// Why a machine cannot give a share.
enum class RdtRefusal {
  kAbsent,      ///< it does not have this resource, or does not control it
  kNoSuchWays,  ///< the cache has fewer ways
  kGaps,        ///< the ways must be neighbours
  kTooFewWays,  ///< fewer than the least that it gives
  kNoPercent,   ///< bandwidth is no percentage here
};

struct RdtObstacle {
  RdtRefusal refusal = RdtRefusal::kAbsent;
  std::string_view key;  ///< "l3", "l2", "mba"

  bool operator==(const RdtObstacle&) const = default;
};

/// Percentages are rounded to what the hardware has, and are at least its least; ways are taken by
/// the letter. The same for all domains.
Expected<Schemata, RdtObstacle> schemata_of(const RdtShares& shares, const RdtFacts& facts);

}  // namespace ka::policy::plan
