// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/source.hpp"

#include <algorithm>
#include <array>

namespace ka::policy::ledger {
namespace {

/// The runtime itself knows most of a container: each change before it is made, and each exit. The
/// shim proxy sees the same calls later and misses exits, but lives as long as its sandbox;
/// persist.json lags behind both; a cgroup has only the mask.
constexpr auto kTraits = std::to_array<SourceTraits>({
    {Source::kApi, "api", 0, false, false, true},
    {Source::kNri, "nri", 3, false, true, true},
    {Source::kProxy, "proxy", 2, true},
    {Source::kPersist, "persist.json", 1},
    {Source::kCgroup, "cgroup"},
    {Source::kKubelet, "kubelet", 0, false, true},
    {Source::kPodResources, "pod-resources", 0, false, true},
    {Source::kDra, "dra", 0, false, true},
    {Source::kLibvirt, "libvirt"},
    {Source::kState, "state"},
    {Source::kBundle, "bundle"},
    {Source::kManaged, "managed", 0, false, true},
});

}  // namespace

std::span<const SourceTraits> source_traits() { return kTraits; }

const SourceTraits& traits_of(Source source) {
  return *std::ranges::find(kTraits, source, &SourceTraits::source);
}

std::string_view source_name(Source source) { return traits_of(source).name; }

std::optional<Source> parse_source(std::string_view name) {
  const auto* found = std::ranges::find(kTraits, name, &SourceTraits::name);
  return found == kTraits.end() ? std::nullopt : std::optional(found->source);
}

}  // namespace ka::policy::ledger
