// SPDX-License-Identifier: Apache-2.0
// The allocation pipeline: named steps that work on one request. Built-in policies are lists of
// such steps (allocate.cpp has the table); docs/understand/allocation.md shows how to add one.
//
// The names of the phases are those of the "CPU Manager Plugin Model"; no published text defines
// what each may do, so their meaning is ours (Phase, in request.hpp).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/allocate/free_cpus.hpp"
#include "policy/allocate/request.hpp"
#include "policy/allocate/split.hpp"
#include "policy/facts/expected.hpp"

namespace ka::policy::allocate {

/// One request on its way through the pipeline. Steps change it.
struct Cycle {
  Cycle(const Machine& the_machine, const CpuRequest& the_request);

  const Machine& machine;
  const CpuRequest& request;

  int needed = 0;              ///< CPUs still to be taken
  CpuSet taken;                ///< CPUs taken so far, without `request.held`
  std::vector<CpuSet> pools;   ///< disjoint; the first is taken from, the others are what follows
  std::vector<Stage> stages;   ///< in the order of their turns
  FreeCpus free;               ///< of the first pool, from PreScore on
  Stage stage = Stage::kCpus;  ///< whose turn it is
  std::vector<Candidate> candidates;
  std::optional<Refusal> refusal;  ///< set by a step: the request ends here
  SplitProblem split;              ///< what kSplits shares out, from its Select on
  std::vector<int> l3_order;       ///< the order in which kPartOfL3 tries L3 caches

  /// Moves CPUs of the first pool to `taken`.
  void take(const CpuSet& cpus);
  /// Takes `cpus` out of all pools.
  void remove(const CpuSet& cpus);
  /// Splits every pool in two, those of `cpus` before the rest.
  void prefer(const CpuSet& cpus);
  void refuse(Refusal::Reason reason, int requested, int available);

  /// Adds to the trace, when there is one; phase, step and stage are filled in.
  void note(Finding finding);

  Phase phase = Phase::kSort;
  std::string_view step;
  std::vector<Finding> trace;
};

struct Step {
  Phase phase = Phase::kSort;
  std::string_view name;
  std::string_view summary;  ///< one sentence, for display
  std::function<void(Cycle&)> run;
};

struct Pipeline {
  std::string name;
  std::string summary;      ///< one sentence, for display
  std::vector<Step> steps;  ///< those of one phase run in this order

  /// A copy with one more step, behind the others of its phase.
  Pipeline with(Step step) const;
};

/// Sends a request to grow (or to begin) through a pipeline.
Expected<CpuAllocation, Refusal> run_growing(const Pipeline& pipeline, const Machine& machine,
                                             const CpuRequest& request);

/// Sends a request to shrink through a pipeline's Deallocate steps: `cpus` of `held` are kept.
CpuAllocation run_shrinking(const Pipeline& pipeline, const Machine& machine,
                            const CpuRequest& request);

}  // namespace ka::policy::allocate
