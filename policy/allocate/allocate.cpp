// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/allocate.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "policy/allocate/steps.hpp"

namespace ka::policy::allocate {
namespace {

enum class Used { kAlways, kDistributed, kFitted, kWholeCores, kMixedCores };

using enum Phase;
using enum Used;

struct Entry {
  Used used = Used::kAlways;
  Step step;
};

/// The table: which policy uses which step. Within a phase, steps run in this order.
std::span<const Entry> table() {
  static const auto kTable = std::to_array<Entry>({
      {kAlways,
       {kSort, "coarse-to-fine",
        "whole sockets and nodes (the larger first), L3 caches if asked for, cores, CPUs",
        steps::coarse_to_fine}},
      {kDistributed,
       {kSort, "split-first", "before all others: an even split over nodes", steps::split_first}},
      {kMixedCores, {kSort, "cores-only", "cores and nothing else", steps::cores_only}},
      {kAlways,
       {kFilter, "whole-core-request",
        "full-pcpus-only: refuses what is not a multiple of a core, or more than whole cores have",
        steps::whole_core_request}},
      {kAlways, {kFilter, "reserved", "removes the reserved CPUs", steps::reserved}},
      {kAlways, {kFilter, "cpu-class", "removes CPUs of other classes", steps::cpu_class}},
      {kAlways,
       {kFilter, "numa-affinity",
        "puts the CPUs of the hinted nodes (align-by-socket: of their sockets) first",
        steps::numa_affinity}},
      {kAlways,
       {kFilter, "near-held",
        "growing: puts CPUs first that share a core, L3, node or socket with the held ones",
        steps::near_held}},
      {kAlways,
       {kFilter, "isolated-first", "if asked for: puts isolated CPUs first",
        steps::isolated_first}},
      {kWholeCores,
       {kFilter, "whole-cores", "removes CPUs of cores that are not free as a whole",
        steps::whole_cores}},
      {kMixedCores, {kFilter, "one-pool", "drops all preferences", steps::one_pool}},
      {kFitted,
       {kPostFilter, "least-spread",
        "puts the CPUs first that span the fewest nodes, then sockets, L3s and broken cores",
        steps::least_spread}},
      {kAlways,
       {kPostFilter, "spill",
        "takes all of a pool that is too small, then the next; refuses when none is left",
        steps::spill}},
      {kAlways,
       {kPreScore, "count-free", "counts the free CPUs of every socket, node, L3 and core",
        steps::count_free}},
      {kDistributed,
       {kSelect, "even-splits", "the combinations of the fewest nodes that can share evenly",
        steps::even_splits}},
      {kAlways,
       {kSelect, "whole-groups",
        "sockets, nodes, L3 caches or cores that are wholly free and fit, fullest parent first",
        steps::whole_groups}},
      {kAlways,
       {kSelect, "part-of-l3", "the L3 caches that can hold all that is still needed",
        steps::part_of_l3}},
      {kAlways,
       {kSelect, "single-cpus",
        "free CPUs, those of broken cores first (distribute-cpus-across-cores: by number)",
        steps::single_cpus}},
      {kDistributed,
       {kScore, "one-socket", "align-by-socket: nodes of one socket before all others",
        steps::one_socket}},
      {kDistributed,
       {kScore, "balance", "standard deviation of the nodes' free CPUs afterwards",
        steps::balance}},
      {kMixedCores,
       {kScore, "exact-cores", "cores that add up to the request first, large ones before small",
        steps::exact_cores}},
      {kAlways, {kScore, "rank", "position in the list", steps::rank}},
      {kDistributed,
       {kAllocate, "take-split", "takes the best split, packed within each node",
        steps::take_split}},
      {kAlways,
       {kAllocate, "take-fitting", "takes candidates in order as long as they fit",
        steps::take_fitting}},
      {kAlways,
       {kDeallocate, "keep-promised", "what the container was admitted with is kept first",
        steps::keep_promised}},
      {kAlways,
       {kDeallocate, "keep-packed", "of the rest, the best packed CPUs are kept",
        steps::keep_packed}},
  });
  return kTable;
}

/// Steps without which a policy answers nothing, or gives away what is reserved.
constexpr std::string_view kNeeded[] = {"coarse-to-fine", "reserved",    "spill",
                                        "count-free",     "single-cpus", "take-fitting",
                                        "keep-packed"};

/// Whether a policy may be made of it by name; the others answer full-pcpus-only where its steps
/// break a core.
bool is_choice(const Entry& entry) {
  return entry.used != Used::kWholeCores && entry.used != Used::kMixedCores;
}

struct PolicyEntry {
  std::string_view name;
  std::string_view summary;
  std::vector<Used> uses;
};

Pipeline made_of(const PolicyEntry& policy) {
  Pipeline pipeline{std::string(policy.name), std::string(policy.summary), {}};
  for (const Entry& entry : table()) {
    if (std::ranges::find(policy.uses, entry.used) != policy.uses.end()) {
      pipeline.steps.push_back(entry.step);
    }
  }
  return pipeline;
}

Pipeline with_steps_for(Pipeline pipeline, Used used) {
  for (const Entry& entry : table()) {
    if (entry.used == used) pipeline.steps.push_back(entry.step);
  }
  return pipeline;
}

bool breaks_cores(const Machine& machine, const CpuSet& cpus) { return !machine.whole_cores(cpus); }

/// full-pcpus-only, after kubelet's answer broke a core.
Expected<CpuAllocation, Refusal> allocate_whole_cores(const Machine& machine,
                                                      const CpuRequest& request,
                                                      const Pipeline& pipeline) {
  const Pipeline whole = with_steps_for(pipeline, Used::kWholeCores);
  auto answer = run_growing(whole, machine, request);
  if (answer && !breaks_cores(machine, answer->cpus)) return answer;
  const Pipeline mixed = with_steps_for(whole, Used::kMixedCores);
  answer = run_growing(mixed, machine, request);
  if (answer && !breaks_cores(machine, answer->cpus)) return answer;
  const int available = machine.whole_cores_in(request.available - request.reserved).size();
  return unexpected(Refusal{Refusal::Reason::kNotEnoughWholeCores, request.cpus, available,
                            machine.average_core()});
}

/// full-pcpus-only, after shrinking broke a core: the held CPUs are searched as if they were all
/// that is free.
Expected<CpuAllocation, Refusal> keep_whole_cores(const Machine& machine,
                                                  const CpuRequest& request) {
  const CpuRequest anew{.cpus = request.cpus,
                        .available = request.held,
                        .options = {CpuOption::kFullPcpusOnly},
                        .explain = request.explain};
  const Step promised_first{Phase::kFilter, "promised-first",
                            "puts what the container was admitted with first",
                            [&request](Cycle& cycle) { cycle.prefer(request.promised); }};
  return allocate(machine, anew, packed_policy().with(promised_first));
}

}  // namespace

std::span<const Pipeline> builtin_policies() {
  static const std::array<Pipeline, 3> kPolicies{
      made_of({"packed", "kubelet's default: whole sockets and nodes, cores, CPUs", {kAlways}}),
      made_of({"distributed",
               "kubelet's distribute-cpus-across-numa: evenly over as few nodes as can share",
               {kAlways, kDistributed}}),
      made_of({"fitted",
               "the fewest nodes, then the fewest sockets, L3 caches and broken cores",
               {kAlways, kFitted}}),
  };
  return kPolicies;
}

const Pipeline* find_policy(std::string_view name) {
  const auto policies = builtin_policies();
  const auto found = std::ranges::find(policies, name, &Pipeline::name);
  return found == policies.end() ? nullptr : &*found;
}

std::vector<std::string_view> step_names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : table()) {
    if (is_choice(entry)) names.push_back(entry.step.name);
  }
  return names;
}

Expected<Pipeline, std::string> policy_of(const std::vector<std::string>& steps) {
  const auto known = step_names();
  for (const std::string& name : steps) {
    if (std::ranges::find(known, name) == known.end())
      return unexpected("no step is called " + name);
  }
  const auto has = [&steps](std::string_view name) {
    return std::ranges::find(steps, name) != steps.end();
  };
  for (const std::string_view name : kNeeded) {
    if (!has(name)) return unexpected("the step " + std::string(name) + " is missing");
  }
  Pipeline pipeline{"own", "steps by name", {}};
  for (const Entry& entry : table()) {
    if (is_choice(entry) && has(entry.step.name)) pipeline.steps.push_back(entry.step);
  }
  return pipeline;
}

const Pipeline& packed_policy() { return builtin_policies()[0]; }
const Pipeline& distributed_policy() { return builtin_policies()[1]; }
const Pipeline& fitted_policy() { return builtin_policies()[2]; }

const Pipeline& policy_for(OptionSet options) {
  return options.has(CpuOption::kDistributeAcrossNuma) ? distributed_policy() : packed_policy();
}

Expected<CpuAllocation, Refusal> allocate(const Machine& machine, const CpuRequest& request,
                                          const Pipeline& pipeline) {
  const bool shrinks = request.cpus < request.held.size();
  auto answer =
      shrinks ? run_shrinking(pipeline, machine, request) : run_growing(pipeline, machine, request);
  const bool promised = request.options.has(CpuOption::kFullPcpusOnly);
  if (!promised || !answer || !breaks_cores(machine, answer->cpus)) return answer;
  return shrinks ? keep_whole_cores(machine, request)
                 : allocate_whole_cores(machine, request, pipeline);
}

CpuSet pack(const Machine& machine, const CpuSet& cpus, int count) {
  if (count >= cpus.size()) return cpus & machine.cpus();
  const CpuRequest request{.cpus = std::min(count, (cpus & machine.cpus()).size()),
                           .available = cpus};
  const auto packed = run_growing(packed_policy(), machine, request);
  return packed ? packed->cpus : CpuSet{};
}

}  // namespace ka::policy::allocate
