// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/request.hpp"

namespace ka::policy::allocate {

std::string refusal_text(const Refusal& refusal) {
  const std::string requested = std::to_string(refusal.requested);
  const std::string available = std::to_string(refusal.available);
  const std::string per_core = std::to_string(refusal.per_core);
  switch (refusal.reason) {
    case Refusal::Reason::kNotEnough:
      return "not enough cpus available to satisfy request: requested=" + requested +
             ", available=" + available;
    case Refusal::Reason::kNotWholeCores:
      return "SMT Alignment Error: requested " + requested +
             " cpus not multiple cpus per core = " + per_core;
    case Refusal::Reason::kNotEnoughWholeCores:
      return "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = " +
             available + ", requested CPUs = " + requested + ", CPUs per core = " + per_core;
    case Refusal::Reason::kNothingLeft:
      return "requested=" + requested + " would leave no cpu to containers that share";
    case Refusal::Reason::kUnknown:
      return "no such container";
    case Refusal::Reason::kDuplicate:
      return "exists already";
    case Refusal::Reason::kNotAligned:
      return "Resources cannot be allocated with Topology locality";
  }
  return "refused";
}

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::kSort:
      return "Sort";
    case Phase::kFilter:
      return "Filter";
    case Phase::kPostFilter:
      return "PostFilter";
    case Phase::kPreScore:
      return "PreScore";
    case Phase::kSelect:
      return "Select";
    case Phase::kScore:
      return "Score";
    case Phase::kAllocate:
      return "Allocate";
    case Phase::kDeallocate:
      return "Deallocate";
  }
  return "unknown";
}

std::string_view stage_name(Stage stage) {
  switch (stage) {
    case Stage::kSplits:
      return "node splits";
    case Stage::kSockets:
      return "sockets";
    case Stage::kNodes:
      return "nodes";
    case Stage::kL3s:
      return "L3 caches";
    case Stage::kPartOfL3:
      return "part of an L3 cache";
    case Stage::kCores:
      return "cores";
    case Stage::kCpus:
      return "CPUs";
  }
  return "unknown";
}

}  // namespace ka::policy::allocate
