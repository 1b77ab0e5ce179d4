// SPDX-License-Identifier: Apache-2.0
// The tables [affinity.classes.NAME]: resource classes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/config/entries.hpp"
#include "policy/plan/resource_classes.hpp"

namespace ka::config {

/// A key of a class that is a number. Its row is all that there is of it, as with kKeys.
struct ClassNumber {
  std::string_view name;
  int lowest, highest;
  std::optional<int> policy::plan::ResourceClass::* member;
  std::string_view doc;  ///< one sentence
};

/// One that is text.
struct ClassText {
  std::string_view name;
  std::string_view values;  ///< what is right, for messages
  /// False: it is none of these.
  bool (*set)(policy::plan::ResourceClass& given, std::string_view text);
  std::string_view doc;  ///< one sentence
};

template <std::optional<policy::CacheShare> policy::RdtShares::* kMember>
bool set_cache(policy::plan::ResourceClass& given, std::string_view text) {
  return (given.rdt.*kMember = policy::parse_cache_share(text)).has_value();
}

inline constexpr std::string_view kCacheValues =
    "\"50%\", \"50-100%\", ways such as \"0-3\", or a mask of ways such as \"0xf\"";

inline constexpr ClassNumber kClassNumbers[] = {
    {"nice", -20, 19, &policy::plan::ResourceClass::nice,
     "Nice value of the threads of the container's vCPUs."},
    {"io_weight", 1, 10000, &policy::plan::ResourceClass::io_weight,
     "io.weight of the sandbox's cgroup; 100 is the kernel's default."},
};

inline constexpr ClassText kClassTexts[] = {
    {"io_max",
     "disks with limits, such as \"8:0 wbps=50000000 riops=1000, 8:16 rbps=max\" (rbps, wbps, "
     "riops, "
     "wiops)",
     [](policy::plan::ResourceClass& given, std::string_view text) {
       given.io_max = policy::parse_io_limits(text, ',').value_or(policy::IoLimits{});
       return !given.io_max.empty();
     },
     "Limits of disks in io.max of the sandbox's cgroup: bytes and operations a second."},
    {"l3", kCacheValues, set_cache<&policy::RdtShares::l3>,
     "Part of the L3 cache that the threads of the container's vCPUs fill."},
    {"l2", kCacheValues, set_cache<&policy::RdtShares::l2>, "The same of the L2 cache."},
    {"mba", "\"1%\" to \"100%\"",
     [](policy::plan::ResourceClass& given, std::string_view text) {
       return (given.rdt.mba = policy::parse_bandwidth(text)).has_value();
     },
     "Memory bandwidth of the threads of the container's vCPUs, at most."},
};

/// Whether a path below [affinity] stands in a class, or should.
bool is_of_class(const std::vector<std::string>& path);

/// What is wrong with an entry of a class; empty: nothing. `at_value`: it is the value.
struct ClassError {
  std::string what;
  bool at_value = false;
};
ClassError check_class(const std::vector<std::string>& path, const Value& value);

/// Precondition: the entries were checked.
policy::plan::ResourceClasses make_classes(const Entries& entries);

}  // namespace ka::config
