// SPDX-License-Identifier: Apache-2.0
#include "tests/property/allocate/every_answer.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "affinity/documents/topology.hpp"
#include "policy/allocate/cpu_hints.hpp"
#include "policy/allocate/fitting.hpp"
#include "policy/allocate/life.hpp"
#include "tests/allocate.hpp"
#include "tests/catch.hpp"

namespace ka::test {
namespace {

using namespace ka::policy;
using namespace ka::policy::allocate;

constexpr HintPolicy kHintPolicies[] = {HintPolicy::kNone, HintPolicy::kBestEffort,
                                        HintPolicy::kRestricted, HintPolicy::kSingleNumaNode};

/// Every option by itself, and none.
std::vector<OptionSet> option_sets(const Pipeline& policy, const Machine& machine) {
  std::vector<OptionSet> sets(1);
  for (const CpuOption option : kCpuOptions) sets.push_back({option});
  for (OptionSet& set : sets) {
    if (policy.name == "distributed") set.add(CpuOption::kDistributeAcrossNuma);
  }
  std::erase_if(sets, [&](OptionSet set) {
    const bool spreads = set.has(CpuOption::kDistributeAcrossNuma) && policy.name != "distributed";
    return spreads || refused_options(set, machine, HintPolicy::kNone);
  });
  return sets;
}

/// One CPU, some, half of them and all.
std::vector<int> sizes(const Machine& machine) {
  const int all = machine.cpus().size();
  return {1, all / 3, all / 2, all};
}

/// The sizes that whole cores come to, where they are asked for: the first cores, taken one by one.
int whole_size(const Machine& machine, int size) {
  int whole = 0;
  for (const CpuGroup& core : machine.groups(CpuLevel::kCore)) {
    if (whole < size) whole += core.size;
  }
  return whole;
}

std::string allocate_everything(const Machine& machine) {
  std::string answers;
  for (const Pipeline& policy : builtin_policies()) {
    for (const OptionSet options : option_sets(policy, machine)) {
      for (int size : sizes(machine)) {
        if (options.has(CpuOption::kFullPcpusOnly)) size = whole_size(machine, size);
        const CpuRequest request{.cpus = size, .available = machine.cpus(), .options = options};
        const auto answer = allocate::allocate(machine, request, policy);
        INFO(policy.name << ", " << size << " CPUs");
        REQUIRE(answer);
        CHECK(answer->cpus.size() == size);
        CHECK(answer->cpus.subset_of(machine.cpus()));
        answers += format_list(answer->cpus) + '\n';
      }
    }
  }
  return answers;
}

/// The merge must admit what one node holds, whatever the policy, and the hint be enough for it.
std::string hint_everything(const Machine& machine) {
  std::string answers;
  for (const int size : sizes(machine)) {
    HintProblem problem{.nodes = machine.topology().nodes()};
    problem.providers = {{{"cpu", cpu_hints(machine, {.available = machine.cpus(), .cpus = size})}},
                         {}};
    for (const HintPolicy policy : kHintPolicies) {
      problem.policy = policy;
      const auto merged = merge_hints(problem);
      INFO("policy " << static_cast<int>(policy) << ", " << size << " CPUs");
      REQUIRE(merged);
      CHECK((merged->admit || (policy == HintPolicy::kSingleNumaNode && size > 1)));
      if (!merged->admit || !merged->affinity) continue;
      CHECK(machine.cpus_of_nodes(*merged->affinity).size() >= size);
      const auto answer = ka::tests::allocate_by_options(
          machine, {.cpus = size, .available = machine.cpus(), .numa_affinity = *merged->affinity});
      REQUIRE(answer);
      CHECK(answer->cpus.subset_of(machine.cpus_of_nodes(*merged->affinity)));
      answers += format_list(answer->cpus) + '\n';
    }
  }
  return answers;
}

std::string fit_everything(const Machine& machine) {
  std::string answers;
  for (const int size : sizes(machine)) {
    const auto fit = best_fit(machine, {.free = machine.cpus(), .cpus = size});
    REQUIRE(fit);
    CHECK(fit->size() == size);
    answers += format_list(*fit) + '\n';
  }
  return answers;
}

/// Pods until nothing is left, and then one that nothing is left for, in every strategy.
std::string live_everywhere(const Machine& machine) {
  std::string answers;
  const int size = std::max(1, machine.cpus().size() / 16);
  for (const Pipeline& policy : builtin_policies()) {
    OptionSet options;
    if (policy.name == "distributed") options.add(CpuOption::kDistributeAcrossNuma);
    Life life(machine, Holdings(machine, {}, options, policy), Life::InitCpus::kFreed);
    const auto add = [&life](int pod, int cpus) {
      const HoldingRequest request{.use = CpuUse::kExclusive, .cpus = cpus};
      const std::vector<PodContainer> app{{"app", PodPart::kApp, request}};
      return life.add(std::to_string(pod), app);
    };
    int pod = 0;
    for (int left = machine.cpus().size(); left > 0; left -= size) {
      const auto got = add(pod++, std::min(size, left));
      REQUIRE(got);
      answers += format_list(got->at("app")) + '\n';
    }
    CHECK(!add(pod, 1));
    CHECK(life.toll().refused == 1);
    CHECK(life.books().exclusive() == machine.cpus());
  }
  return answers;
}

}  // namespace

std::string answers_of(const Topology& topology) {
  const Machine machine(topology);
  return allocate_everything(machine) + hint_everything(machine) + fit_everything(machine) +
         live_everywhere(machine);
}

Topology through_json(const Topology& topology) {
  const std::string text = boost::json::serialize(documents::to_json(topology));
  auto read = documents::topology_from_json(boost::json::parse(text));
  REQUIRE(read);
  return *std::move(read);
}

}  // namespace ka::test
