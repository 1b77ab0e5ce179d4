// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/options.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace ka::policy::allocate {
namespace {

template <typename Value, std::size_t N>
using Names = std::array<std::pair<Value, std::string_view>, N>;

constexpr Names<CpuOption, 6> kOptionNames{{
    {CpuOption::kFullPcpusOnly, "full-pcpus-only"},
    {CpuOption::kDistributeAcrossNuma, "distribute-cpus-across-numa"},
    {CpuOption::kDistributeAcrossCores, "distribute-cpus-across-cores"},
    {CpuOption::kAlignBySocket, "align-by-socket"},
    {CpuOption::kPreferAlignByUncoreCache, "prefer-align-cpus-by-uncorecache"},
    {CpuOption::kStrictCpuReservation, "strict-cpu-reservation"},
}};

constexpr Names<HintPolicy, 4> kPolicyNames{{
    {HintPolicy::kNone, "none"},
    {HintPolicy::kBestEffort, "best-effort"},
    {HintPolicy::kRestricted, "restricted"},
    {HintPolicy::kSingleNumaNode, "single-numa-node"},
}};

constexpr Names<CpuClass, 3> kClassNames{{
    {CpuClass::kAny, "any"},
    {CpuClass::kFast, "fast"},
    {CpuClass::kEfficient, "efficient"},
}};

/// In the order in which kubelet checks them (NewStaticPolicyOptions).
constexpr std::array<std::pair<CpuOption, CpuOption>, 4> kRefusedPairs{{
    {CpuOption::kFullPcpusOnly, CpuOption::kDistributeAcrossCores},
    {CpuOption::kDistributeAcrossNuma, CpuOption::kDistributeAcrossCores},
    {CpuOption::kPreferAlignByUncoreCache, CpuOption::kDistributeAcrossCores},
    {CpuOption::kPreferAlignByUncoreCache, CpuOption::kDistributeAcrossNuma},
}};

template <typename Value, std::size_t N>
std::string_view name_of(const Names<Value, N>& names, Value wanted) {
  for (const auto& [value, name] : names) {
    if (value == wanted) return name;
  }
  return "unknown";
}

template <typename Value, std::size_t N>
std::optional<Value> value_of(const Names<Value, N>& names, std::string_view wanted) {
  for (const auto& [value, name] : names) {
    if (name == wanted) return value;
  }
  return std::nullopt;
}

int fastest_kind(const Topology& topology) {
  int fastest = std::numeric_limits<int>::min();
  for (const Cpu& cpu : topology.cpus()) {
    if (cpu.online) fastest = std::max(fastest, cpu.kind);
  }
  return fastest;
}

}  // namespace

std::string_view option_name(CpuOption option) { return name_of(kOptionNames, option); }

std::optional<CpuOption> parse_option(std::string_view name) {
  return value_of(kOptionNames, name);
}

std::optional<HintPolicy> parse_hint_policy(std::string_view name) {
  return value_of(kPolicyNames, name);
}

std::optional<CpuClass> parse_cpu_class(std::string_view name) {
  return value_of(kClassNames, name);
}

std::optional<std::string> refused_options(OptionSet options, const Machine& machine,
                                           HintPolicy policy) {
  for (const auto& [first, second] : kRefusedPairs) {
    if (!options.has(first) || !options.has(second)) continue;
    return "static policy options " + std::string(option_name(first)) + " and " +
           std::string(option_name(second)) + " can not be used at the same time";
  }
  if (!options.has(CpuOption::kAlignBySocket)) return std::nullopt;
  if (policy == HintPolicy::kSingleNumaNode) {
    return "Topology manager single-numa-node policy is incompatible with CPUManager "
           "align-by-socket policy option";
  }
  if (machine.groups(CpuLevel::kSocket).size() > machine.groups(CpuLevel::kNode).size()) {
    return "Align by socket is not compatible with hardware where number of sockets are more than "
           "number of NUMA";
  }
  return std::nullopt;
}

CpuSet cpus_of_class(const Topology& topology, CpuClass cpu_class) {
  const int fastest = fastest_kind(topology);
  CpuSet fast, others;
  for (const Cpu& cpu : topology.cpus()) {
    if (cpu.online) (cpu.kind == fastest ? fast : others).add(cpu.cpu);
  }
  if (cpu_class == CpuClass::kFast) return fast;
  if (cpu_class == CpuClass::kEfficient && !others.empty()) return others;
  return topology.online();
}

}  // namespace ka::policy::allocate
