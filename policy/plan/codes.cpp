#include <array>
#include <utility>

#include "policy/plan/plan.hpp"

namespace ka::policy {
namespace {

constexpr std::array<std::pair<Code, std::string_view>, 24> kNames{{
    {Code::kDedicated, "dedicated"},
    {Code::kFloating, "floating"},
    {Code::kSharedContainer, "shared-container"},
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
    {Code::kIsolateImpossible, "isolate-impossible"},
    {Code::kOverrideRefused, "override-refused"},
}};

}  // namespace

std::string_view code_name(Code code) {
  for (const auto& [value, name] : kNames) {
    if (value == code) return name;
  }
  return "unknown";
}

}  // namespace ka::policy
