// SPDX-License-Identifier: Apache-2.0
// The sources of events, and the precedence of their reports (docs/understand/sources.md, "Which
// source decides").
#pragma once

#include <optional>
#include <span>
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
};

/// One row each.
std::span<const SourceTraits> source_traits();
const SourceTraits& traits_of(Source source);

/// "api", "nri", "proxy", "persist.json", "cgroup", "kubelet", "pod-resources", "dra", "libvirt",
/// "state", "bundle", "managed".
std::string_view source_name(Source source);
std::optional<Source> parse_source(std::string_view name);

}  // namespace ka::policy::ledger
