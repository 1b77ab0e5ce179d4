// SPDX-License-Identifier: Apache-2.0
// The sources of events, and the precedence of their reports (docs/understand/sources.md, "Which
// source decides").
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>

namespace ka::policy::ledger {

/// Shown by `explain`.
enum class Source {
  kApi,
  kNri,
  kProxy,
  kPersist,
  kCgroup,
  kKubelet,
  kPodResources,
  kDra,  ///< dra-driver-cpu's CDI files
  kLibvirt,
  kState,
  kBundle,
  kManaged,  ///< we give out the CPUs ourselves
};

struct SourceTraits {
  Source source;
  std::string_view name;  ///< in `status`, `explain`, metrics and state files
  /// How much it knows of a container: reports of a lower rank change nothing.
  int rank = 0;
  /// Its rank counts also while it is not connected.
  bool outlives_connection = false;
  /// It knows of every pod of the node which CPUs it owns.
  bool knows_every_pod = false;
  /// It reports the exit of each container.
  bool reports_exits = false;
  /// It repeats the number of a VMM from what it once noted, also when that has ended.
  bool repeats_numbers = false;
};

constexpr std::size_t index_of(Source source) { return static_cast<std::size_t>(source); }

/// One row each, in the order of the enum. The runtime itself knows most of a container: each
/// change before it is made, and each exit. The shim proxy sees the same calls later and misses
/// exits, but lives as long as its sandbox; persist.json lags behind both; a cgroup has only the
/// mask.
inline constexpr SourceTraits kSources[] = {
    {Source::kApi, "api", 0, false, false, true},
    {Source::kNri, "nri", 3, false, true, true, true},
    {Source::kProxy, "proxy", 2, true, false, false, true},
    {Source::kPersist, "persist.json", 1, false, false, false, true},
    {Source::kCgroup, "cgroup"},
    {Source::kKubelet, "kubelet", 0, false, true},
    {Source::kPodResources, "pod-resources", 0, false, true},
    {Source::kDra, "dra"},
    {Source::kLibvirt, "libvirt"},
    {Source::kState, "state"},
    {Source::kBundle, "bundle"},
    {Source::kManaged, "managed", 0, false, true},
};

static_assert(std::ranges::all_of(kSources, [](const SourceTraits& traits) {
  return &traits == &kSources[index_of(traits.source)];
}));

const SourceTraits& traits_of(Source source);

/// "api", "nri", "proxy", "persist.json", "cgroup", "kubelet", "pod-resources", "dra", "libvirt",
/// "state", "bundle", "managed".
std::string_view source_name(Source source);
std::optional<Source> parse_source(std::string_view name);

}  // namespace ka::policy::ledger
