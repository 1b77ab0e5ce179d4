// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/pipeline.hpp"

#include <algorithm>
#include <utility>

namespace ka::policy::allocate {
namespace {

/// Stops where a step refuses the request.
void run_phase(const Pipeline& pipeline, Phase phase, Cycle& cycle) {
  for (const Step& step : pipeline.steps) {
    if (step.phase != phase) continue;
    cycle.phase = phase;
    cycle.step = step.name;
    step.run(cycle);
    if (cycle.refusal) return;
  }
}

void run_stage(const Pipeline& pipeline, Stage stage, Cycle& cycle) {
  cycle.stage = stage;
  cycle.candidates.clear();
  run_phase(pipeline, Phase::kSelect, cycle);
  if (cycle.candidates.empty()) return;
  run_phase(pipeline, Phase::kScore, cycle);
  std::ranges::stable_sort(cycle.candidates, {}, &Candidate::score);
  run_phase(pipeline, Phase::kAllocate, cycle);
}

}  // namespace

Cycle::Cycle(const Machine& the_machine, const CpuRequest& the_request)
    : machine(the_machine),
      request(the_request),
      needed(the_request.cpus - the_request.held.size()),
      pools{(the_request.available & the_machine.cpus()) - the_request.held},
      free(the_machine) {}

void Cycle::take(const CpuSet& cpus) {
  taken |= cpus;
  needed -= cpus.size();
  pools.front() -= cpus;
  free.take(cpus);
}

void Cycle::remove(const CpuSet& cpus) {
  if (cpus.empty()) return;
  CpuSet removed;
  for (CpuSet& pool : pools) {
    removed |= pool & cpus;
    pool -= cpus;
  }
  if (!removed.empty()) note({.what = Finding::What::kRemoved, .cpus = removed});
}

void Cycle::prefer(const CpuSet& cpus) {
  if (cpus.empty()) return;
  std::vector<CpuSet> parts;
  CpuSet preferred;
  for (const CpuSet& pool : pools) {
    preferred |= pool & cpus;
    parts.push_back(pool & cpus);
    parts.push_back(pool - cpus);
  }
  std::erase_if(parts, [](const CpuSet& pool) { return pool.empty(); });
  if (parts.empty()) return;
  pools = std::move(parts);
  if (!preferred.empty()) note({.what = Finding::What::kPreferred, .cpus = preferred});
}

void Cycle::refuse(Refusal::Reason reason, int requested, int available) {
  refusal = Refusal{reason, requested, available, machine.average_core()};
}

void Cycle::note(Finding finding) {
  if (!request.explain) return;
  finding.phase = phase;
  finding.step = step;
  if (finding.what != Finding::What::kOrdered) finding.stage = stage;
  trace.push_back(std::move(finding));
}

Pipeline Pipeline::with(Step step) const {
  Pipeline longer = *this;
  longer.steps.push_back(std::move(step));
  return longer;
}

Expected<CpuAllocation, Refusal> run_growing(const Pipeline& pipeline, const Machine& machine,
                                             const CpuRequest& request) {
  Cycle cycle(machine, request);
  for (const Phase phase : {Phase::kSort, Phase::kFilter, Phase::kPostFilter, Phase::kPreScore}) {
    run_phase(pipeline, phase, cycle);
    if (cycle.refusal) return unexpected(*cycle.refusal);
  }
  for (const Stage stage : cycle.stages) {
    if (cycle.needed == 0) break;
    run_stage(pipeline, stage, cycle);
    if (cycle.refusal) return unexpected(*cycle.refusal);
  }
  if (cycle.needed > 0) {
    return unexpected(Refusal{Refusal::Reason::kNotEnough, cycle.needed, cycle.free.cpus().size(),
                              machine.average_core()});
  }
  return CpuAllocation{cycle.taken | request.held, std::move(cycle.trace)};
}

CpuAllocation run_shrinking(const Pipeline& pipeline, const Machine& machine,
                            const CpuRequest& request) {
  Cycle cycle(machine, request);
  cycle.pools = {request.held};
  cycle.needed = request.cpus;
  run_phase(pipeline, Phase::kDeallocate, cycle);
  return {cycle.taken, std::move(cycle.trace)};
}

}  // namespace ka::policy::allocate
