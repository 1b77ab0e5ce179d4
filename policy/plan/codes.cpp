// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <tuple>
#include <utility>

#include "policy/plan/invariants.hpp"
#include "policy/plan/plan.hpp"

namespace ka::policy::plan {
namespace {

constexpr std::array<std::pair<Code, std::string_view>, 26> kNames{{
    {Code::kDedicated, "dedicated"},
    {Code::kFloating, "floating"},
    {Code::kSharedContainer, "shared-container"},
    {Code::kBornNear, "born-near"},
    {Code::kUnconstrained, "unconstrained"},
    {Code::kHousekeepingSandbox, "housekeeping-sandbox"},
    {Code::kHousekeepingSharedPool, "housekeeping-shared-pool"},
    {Code::kHousekeepingCpus, "housekeeping-cpus"},
    {Code::kHousekeepingIsolate, "housekeeping-isolate"},
    {Code::kForeignCpusRemoved, "foreign-cpus-removed"},
    {Code::kKeptFromBefore, "kept-from-before"},
    {Code::kIsolatedCpus, "isolated-cpus"},
    {Code::kVcpusLeftAlone, "vcpus-left-alone"},
    {Code::kVcpusOnMask, "vcpus-on-mask"},
    {Code::kOverrideByHand, "override-by-hand"},
    {Code::kNotIsolated, "not-isolated"},
    {Code::kTooFewVcpus, "too-few-vcpus"},
    {Code::kVcpuShared, "vcpu-shared"},
    {Code::kNoFloatingVcpu, "no-floating-vcpu"},
    {Code::kCpusUnusable, "cpus-unusable"},
    {Code::kCpusContested, "cpus-contested"},
    {Code::kNoUsableCpu, "no-usable-cpu"},
    {Code::kHousekeepingRefused, "housekeeping-refused"},
    {Code::kHousekeepingConfined, "housekeeping-confined"},
    {Code::kIsolateImpossible, "isolate-impossible"},
    {Code::kOverrideRefused, "override-refused"},
}};

constexpr std::array<std::tuple<Breach, std::string_view, int>, 11> kBreaches{{
    {Breach::kOutside, "outside", 1},
    {Breach::kForeignCpu, "foreign-cpu", 2},
    {Breach::kNotOneCpu, "not-one-cpu", 3},
    {Breach::kCpuTaken, "cpu-taken", 3},
    {Breach::kNotAlone, "not-alone", 4},
    {Breach::kNotDedicated, "not-dedicated", 4},
    {Breach::kVcpuNotOwn, "vcpu-not-own", 4},
    {Breach::kSiblingsApart, "siblings-apart", 5},
    {Breach::kUnstable, "unstable", 6},
    {Breach::kWidened, "widened", 8},
    {Breach::kNoVcpu, "no-vcpu", 8},
}};

}  // namespace

std::string_view code_name(Code code) {
  for (const auto& [value, name] : kNames) {
    if (value == code) return name;
  }
  return "unknown";
}

std::string_view breach_name(Breach breach) {
  for (const auto& [value, name, number] : kBreaches) {
    if (value == breach) return name;
  }
  return "unknown";
}

int invariant_of(Breach breach) {
  for (const auto& [value, name, number] : kBreaches) {
    if (value == breach) return number;
  }
  return 0;
}

}  // namespace ka::policy::plan
