// SPDX-License-Identifier: Apache-2.0
// The options of a request for CPUs, and the combinations that kubelet refuses.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "policy/allocate/machine.hpp"
#include "policy/facts/expected.hpp"

namespace ka::policy::allocate {

/// The options of kubelet's static policy (policy_options.go).
enum class CpuOption {
  kFullPcpusOnly,             ///< whole cores, else SMTAlignmentError
  kDistributeAcrossNuma,      ///< evenly over as few nodes as can hold the request evenly
  kDistributeAcrossCores,     ///< CPUs by number within a socket instead of core by core
  kAlignBySocket,             ///< a NUMA affinity means the whole sockets of its nodes
  kPreferAlignByUncoreCache,  ///< whole L3 caches first, then a part of one
  kStrictCpuReservation,      ///< reserved CPUs leave the shared pool too
};

inline constexpr CpuOption kCpuOptions[] = {CpuOption::kFullPcpusOnly,
                                            CpuOption::kDistributeAcrossNuma,
                                            CpuOption::kDistributeAcrossCores,
                                            CpuOption::kAlignBySocket,
                                            CpuOption::kPreferAlignByUncoreCache,
                                            CpuOption::kStrictCpuReservation};

/// kubelet's name: "full-pcpus-only", "distribute-cpus-across-numa", ...
std::string_view option_name(CpuOption option);
std::optional<CpuOption> parse_option(std::string_view name);

class OptionSet {
 public:
  OptionSet() = default;
  OptionSet(std::initializer_list<CpuOption> options) {
    for (const CpuOption option : options) add(option);
  }

  void add(CpuOption option) { bits_ |= bit(option); }
  bool has(CpuOption option) const { return (bits_ & bit(option)) != 0; }
  bool operator==(const OptionSet&) const = default;

 private:
  static unsigned bit(CpuOption option) { return 1U << static_cast<unsigned>(option); }

  unsigned bits_ = 0;
};

/// kubelet's topology manager policies.
enum class HintPolicy { kNone, kBestEffort, kRestricted, kSingleNumaNode };

/// "none", "best-effort", "restricted", "single-numa-node".
std::optional<HintPolicy> parse_hint_policy(std::string_view name);

/// Why kubelet would not start with these options on this machine, in kubelet's words; none where
/// it would. align-by-socket is refused beside the policy single-numa-node, and on machines with
/// more sockets than nodes.
std::optional<std::string> refused_options(OptionSet options, const Machine& machine,
                                           HintPolicy policy);

/// Classes of CPUs on hybrid machines. On a machine with one kind of CPU, all are both.
enum class CpuClass {
  kAny,
  kFast,       ///< the fastest kind
  kEfficient,  ///< every other kind
};

/// "any", "fast", "efficient": the values of the annotation.
std::optional<CpuClass> parse_cpu_class(std::string_view name);
/// The online CPUs of a class.
CpuSet cpus_of_class(const Topology& topology, CpuClass cpu_class);

}  // namespace ka::policy::allocate
