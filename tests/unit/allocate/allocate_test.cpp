// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/allocate.hpp"

#include <algorithm>

#include "policy/allocate/split.hpp"
#include "tests/allocate.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"

using namespace ka::policy;
using namespace ka::policy::allocate;
using ka::test::grid_machine;

namespace {

CpuSet cpus(const char* list) { return parse_list<CpuTag>(list).value(); }

/// The answer as text: the list, or the refusal.
std::string answer(const Machine& machine, CpuRequest request) {
  if (request.available.empty()) request.available = machine.cpus();
  const auto answer = ka::tests::allocate_by_options(machine, request);
  return answer ? format_list(answer->cpus) : refusal_text(answer.error());
}

}  // namespace

TEST_CASE("whole nodes are allocated before whole cores, cores before threads") {
  const Machine machine = grid_machine({.sockets = 2, .cores_per_node = 4});
  CHECK(answer(machine, {.cpus = 3}) == "0-1,8");
  CHECK(answer(machine, {.cpus = 8}) == "0-3,8-11");
  CHECK(answer(machine, {.cpus = 2, .available = cpus("0-7,12-15")}) == "4,12");
  CHECK(answer(machine, {.cpus = 0}) == "");
}

TEST_CASE("an impossible request fails with kubelet's message") {
  const Machine machine = grid_machine({});
  CHECK(answer(machine, {.cpus = 9}) ==
        "not enough cpus available to satisfy request: requested=9, available=8");
  const OptionSet whole{CpuOption::kFullPcpusOnly};
  CHECK(answer(machine, {.cpus = 3, .options = whole}) ==
        "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2");
  CHECK(answer(machine, {.cpus = 8, .reserved = {0}, .options = whole}) ==
        "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 6, "
        "requested CPUs = 8, CPUs per core = 2");
}

TEST_CASE("reserved, offline and unknown CPUs are not allocated") {
  auto layout = ka::test::grid_cpus({});
  layout[1].online = false;
  const Machine machine = ka::test::machine_of(layout);
  CHECK(answer(machine, {.cpus = 6, .available = CpuSet::range(0, 99), .reserved = {0}}) ==
        "1-3,5-7");
  CHECK(answer(machine, {.cpus = 7, .available = CpuSet::range(0, 99), .reserved = {0}}) ==
        "not enough cpus available to satisfy request: requested=7, available=6");
}

TEST_CASE("a core is free if all of its threads are") {
  auto layout = ka::test::grid_cpus({});
  layout[1].online = false;  // CPU 4, the sibling of CPU 0
  const Machine machine = ka::test::machine_of(layout);
  CHECK(FreeCpus(machine, machine.cpus()).whole_groups(CpuLevel::kCore) == std::vector{0, 1, 2, 3});
  CHECK(answer(machine, {.cpus = 1}) == "0");
}

TEST_CASE("CPUs of hinted NUMA nodes are allocated first") {
  const Machine machine = grid_machine({.sockets = 2, .nodes_per_socket = 2, .cores_per_node = 2});
  CHECK(answer(machine, {.cpus = 2, .numa_affinity = NodeSet{3}}) == "6,14");
  CHECK(answer(machine, {.cpus = 6, .numa_affinity = NodeSet{3}}) == "4,6-7,12,14-15");
  CHECK(answer(machine,
               {.cpus = 6, .options = {CpuOption::kAlignBySocket}, .numa_affinity = NodeSet{3}}) ==
        "4-6,12-14");
  CHECK(answer(machine, {.cpus = 5, .available = cpus("0-1,6-7"), .numa_affinity = NodeSet{3}}) ==
        "not enough cpus available to satisfy request: requested=3, available=2");
}

TEST_CASE(
    "align-by-socket distributes over the nodes of one socket, also on more than eight nodes") {
  const Machine machine = grid_machine({.sockets = 2, .nodes_per_socket = 6, .cores_per_node = 2});
  // Three CPUs are free in each node of socket 0, four in two nodes of socket 1.
  CpuRequest request{.cpus = 9,
                     .available = cpus("0-15,24,26,28,30,32,34,36-39"),
                     .options = {CpuOption::kDistributeAcrossNuma}};
  CHECK(answer(machine, request) == "0-1,12-15,24,36,38");
  request.options.add(CpuOption::kAlignBySocket);
  CHECK(answer(machine, request) == "0-5,24,26,28");
}

TEST_CASE("full-pcpus-only keeps cores whole where kubelet splits some") {
  // Of node 0 single threads are free, of nodes 1 and 2 two cores each.
  const Machine machine = grid_machine({.sockets = 3, .cores_per_node = 4});
  const CpuSet available = cpus("0-3,4-5,8-9,16-17,20-21");
  const OptionSet distributed{CpuOption::kDistributeAcrossNuma};
  OptionSet both = distributed;
  both.add(CpuOption::kFullPcpusOnly);
  CHECK(answer(machine,
               {.cpus = 8, .available = available, .options = distributed, .group_size = 2}) ==
        "0-5,16-17");
  CHECK(answer(machine, {.cpus = 8, .available = available, .options = both}) ==
        "4-5,8-9,16-17,20-21");
  CHECK(answer(machine, {.cpus = 10, .available = available, .options = both}) ==
        "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 8, "
        "requested CPUs = 10, CPUs per core = 2");
}

TEST_CASE("hybrid machines: CPUs by class, and whole cores of different sizes") {
  const Machine machine = ka::test::hybrid_machine();
  CHECK(answer(machine, {.cpus = 3, .cpu_class = CpuClass::kFast}) == "0-2");
  CHECK(answer(machine, {.cpus = 2, .cpu_class = CpuClass::kEfficient}) == "4-5");
  CHECK(answer(machine, {.cpus = 5, .cpu_class = CpuClass::kFast}) ==
        "not enough cpus available to satisfy request: requested=5, available=4");
  const OptionSet whole{CpuOption::kFullPcpusOnly};
  CHECK(answer(machine, {.cpus = 5, .available = cpus("0-4"), .options = whole}) == "0-4");
  CHECK(answer(machine, {.cpus = 3, .available = cpus("0-4"), .options = whole}) == "0-1,4");
  CHECK(answer(machine, {.cpus = 3, .available = cpus("0-3"), .options = whole}) ==
        "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 4, "
        "requested CPUs = 3, CPUs per core = 1");
  CHECK(cpus_of_class(grid_machine({}).topology(), CpuClass::kEfficient).size() == 8);
}

TEST_CASE("whole cores of different sizes are combined to the exact request") {
  // Cores 0-3, 4-6 and 7-9.
  std::vector<Cpu> cpus;
  for (int cpu = 0; cpu < 10; ++cpu)
    cpus.push_back({.cpu = cpu, .core = cpu < 4 ? 0 : (cpu - 1) / 3});
  const Machine machine(Topology::make(cpus).value());
  const auto whole = [&](int count) {
    const auto answer = ka::tests::allocate_by_options(
        machine,
        {.cpus = count, .available = machine.cpus(), .options = {CpuOption::kFullPcpusOnly}});
    return answer ? format_list(answer->cpus) : "refused";
  };
  CHECK(whole(6) == "4-9");
  CHECK(whole(7) == "0-6");
  CHECK(whole(4) == "0-3");
  CHECK(whole(10) == "0-9");
  CHECK(whole(5) == "refused");
}

TEST_CASE("cores are ordered by their lowest CPU, not by core id") {
  const Machine machine(Topology::make({{.cpu = 0, .core = 9},
                                        {.cpu = 1, .core = 3},
                                        {.cpu = 2, .core = 9},
                                        {.cpu = 3, .core = 3},
                                        {.cpu = 4, .core = 1},
                                        {.cpu = 5, .core = 1}})
                            .value());
  CHECK(
      format_list(ka::tests::allocate_by_options(machine, {.cpus = 2, .available = machine.cpus()})
                      ->cpus) == "0,2");
}

TEST_CASE("prefer-isolated allocates isolcpus and nohz_full CPUs first") {
  auto layout = ka::test::grid_cpus({.threads = 1});
  layout[2].isolated = layout[3].isolated = true;
  layout[1].nohz_full = layout[3].nohz_full = true;
  const Machine machine = ka::test::machine_of(layout);
  CHECK(answer(machine, {.cpus = 1}) == "0");
  CHECK(answer(machine, {.cpus = 1, .prefer_isolated = true}) == "3");
  CHECK(answer(machine, {.cpus = 2, .prefer_isolated = true}) == "2-3");
  CHECK(answer(machine, {.cpus = 3, .prefer_isolated = true}) == "1-3");
}

TEST_CASE("a resize up keeps the held CPUs and adds the nearest") {
  const Machine machine = grid_machine({.sockets = 2, .cores_per_node = 4, .cores_per_l3 = 2});
  const CpuSet all = machine.cpus();
  CHECK(answer(machine, {.cpus = 2, .available = all - CpuSet{6}, .held = {6}}) == "6,14");
  CHECK(answer(machine, {.cpus = 4, .available = all - CpuSet{6, 14}, .held = {6, 14}}) ==
        "6-7,14-15");
  CHECK(answer(machine, {.cpus = 6, .available = all - CpuSet{6, 14}, .held = {6, 14}}) ==
        "4,6-7,12,14-15");
  CHECK(answer(machine, {.cpus = 3, .available = CpuSet{0}, .held = {6, 14}}) == "0,6,14");
}

TEST_CASE("a resize down keeps the promised CPUs, then the best packed") {
  const Machine machine = grid_machine({.sockets = 2, .cores_per_node = 4});
  CHECK(answer(machine, {.cpus = 3, .held = cpus("1-2,4,12"), .promised = {2}}) == "2,4,12");
  CHECK(answer(machine, {.cpus = 1, .held = cpus("1-2,4,12"), .promised = {1, 2}}) == "1");
  CHECK(answer(machine, {.cpus = 0, .held = cpus("1-2")}) == "");
  CHECK(answer(machine, {.cpus = -1, .held = cpus("1-2")}) == "");
}

TEST_CASE("full-pcpus-only: a resize down keeps whole cores") {
  const Machine machine = grid_machine({.sockets = 2, .cores_per_node = 4});
  const OptionSet whole{CpuOption::kFullPcpusOnly};
  const CpuSet held = cpus("1-2,4,9-10,12");
  CHECK(answer(machine, {.cpus = 4, .options = whole, .held = held, .promised = {4, 12}}) ==
        "1,4,9,12");
  CHECK(answer(machine, {.cpus = 2, .options = whole, .held = held, .promised = {4}}) == "4,12");
  CHECK(answer(machine, {.cpus = 0, .options = whole, .held = held}) == "");
  CHECK(answer(machine, {.cpus = 3, .options = whole, .held = held}) ==
        "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2");
  CHECK(answer(ka::test::hybrid_machine(), {.cpus = 2, .options = whole, .held = cpus("0-1,4")}) ==
        "0-1");
}

TEST_CASE("a request on which kubelet's distribution does not terminate is allocated") {
  const Machine machine = grid_machine({.sockets = 2, .nodes_per_socket = 2, .cores_per_node = 10});
  const CpuSet available = cpus("40,1,41,2,42,50,11,51,12,52,21,61,22,62,31,71,32,72");
  CHECK(answer(machine, {.cpus = 14,
                         .available = available,
                         .options = {CpuOption::kDistributeAcrossNuma},
                         .group_size = 2}) == "1-2,11-12,21-22,31,41-42,51-52,61-62,71");
}

TEST_CASE("the best combination of nodes is kept where kubelet overwrites it") {
  // Three CPUs are free on each of nodes 0-3 and 7. Node 7 comes first, since its socket is fuller;
  // all combinations of four are equally good, and the first is 7, 0, 1, 2. kubelet finds it, and
  // then writes the 3 of the next combination over its last node.
  const Machine machine = grid_machine({.sockets = 2, .nodes_per_socket = 4, .cores_per_node = 2});
  CpuSet available;
  for (const int node : {0, 1, 2, 3, 7}) {
    CpuSet cpus = machine.topology().node_cpus(node);
    cpus.remove(cpus.last());
    available |= cpus;
  }
  const CpuRequest request{
      .cpus = 12, .available = available, .options = {CpuOption::kDistributeAcrossNuma}};
  CHECK(machine.topology().nodes_of(ka::tests::allocate_by_options(machine, request)->cpus) ==
        NodeSet{0, 1, 2, 7});
}

TEST_CASE("with more than eight nodes those with the most free CPUs are allocated") {
  const Machine machine = grid_machine({.sockets = 12, .cores_per_node = 2});
  const CpuSet busy = machine.topology().node_cpus(0) | machine.topology().node_cpus(5);
  const CpuSet one_each{2, 4};  // of nodes 1 and 2
  CHECK(answer(machine, {.cpus = 6,
                         .available = machine.cpus() - busy - one_each,
                         .options = {CpuOption::kDistributeAcrossNuma}}) == "6-9,30,32");
}

TEST_CASE("options that kubelet does not combine are rejected") {
  const Machine machine = grid_machine({.sockets = 2, .cores_per_node = 2});
  const auto refused = [&](OptionSet options, HintPolicy policy = HintPolicy::kNone) {
    return refused_options(options, machine, policy).value_or("");
  };
  using enum CpuOption;
  CHECK(refused({kFullPcpusOnly, kDistributeAcrossNuma, kStrictCpuReservation}) == "");
  CHECK(refused({kFullPcpusOnly, kDistributeAcrossCores}) ==
        "static policy options full-pcpus-only and distribute-cpus-across-cores can not be used at "
        "the same time");
  CHECK(refused({kDistributeAcrossNuma, kDistributeAcrossCores}) != "");
  CHECK(refused({kPreferAlignByUncoreCache, kDistributeAcrossCores}) != "");
  CHECK(refused({kPreferAlignByUncoreCache, kDistributeAcrossNuma}) != "");
  CHECK(refused({kAlignBySocket}) == "");
  CHECK(refused({kAlignBySocket}, HintPolicy::kSingleNumaNode) != "");
  auto layout = ka::test::grid_cpus({.sockets = 2, .cores_per_node = 2});
  for (Cpu& cpu : layout) cpu.numa = 0;
  CHECK(refused_options({kAlignBySocket}, ka::test::machine_of(layout), HintPolicy::kNone));
}

TEST_CASE("built-in policies are found by name and have steps in every phase") {
  CHECK(find_policy("spread") == nullptr);
  for (const Pipeline& policy : builtin_policies()) {
    CHECK(find_policy(policy.name) == &policy);
    for (int phase = 0; phase <= static_cast<int>(Phase::kDeallocate); ++phase) {
      CHECK(std::ranges::count(policy.steps, static_cast<Phase>(phase), &Step::phase) > 0);
    }
  }
}

TEST_CASE("names of options, CPU classes and hint policies are parsed") {
  for (const CpuOption option : kCpuOptions) CHECK(parse_option(option_name(option)) == option);
  CHECK(!parse_option("full-pcpus"));
  CHECK(parse_cpu_class("efficient") == CpuClass::kEfficient);
  CHECK(parse_hint_policy("restricted") == HintPolicy::kRestricted);
}

TEST_CASE("the trace lists the steps and scores of the allocation") {
  const Machine machine = grid_machine({.sockets = 2, .cores_per_node = 4});
  const CpuRequest request{.cpus = 3,
                           .available = machine.cpus(),
                           .reserved = {0},
                           .options = {CpuOption::kDistributeAcrossNuma},
                           .explain = true};
  const auto answer = ka::tests::allocate_by_options(machine, request);
  REQUIRE(answer);
  std::string steps;
  for (const Finding& finding : answer->trace) {
    if (finding.what != Finding::What::kOrdered) steps += finding.step + ' ';
  }
  CHECK(steps == "reserved even-splits balance balance take-split ");
  const Finding& chosen = answer->trace.back();
  CHECK(chosen.cpus == answer->cpus);
  CHECK(chosen.score == 1);
}

TEST_CASE("the trace says what a resize down keeps, and what it prefers") {
  const Machine machine = grid_machine({.sockets = 2, .cores_per_node = 4});
  const CpuRequest request{.cpus = 3,
                           .available = machine.cpus(),
                           .held = cpus("1-2,4,12"),
                           .promised = {2},
                           .explain = true};
  std::string said;
  const auto got = ka::tests::allocate_by_options(machine, request);
  REQUIRE(got);
  for (const Finding& finding : got->trace) {
    if (finding.what == Finding::What::kPreferred) said += "first " + format_list(finding.cpus);
    if (finding.what == Finding::What::kKept) said += "; kept " + format_list(finding.cpus);
  }
  CHECK(said == "first 2; kept 2; kept 4,12");
}

TEST_CASE("the trace counts the candidates of each stage") {
  const Machine machine = grid_machine({.sockets = 2, .cores_per_node = 4, .cores_per_l3 = 2});
  const auto listed = [&](const Pipeline& policy, int count) {
    std::string stages;
    const CpuRequest request{.cpus = count, .available = machine.cpus(), .explain = true};
    const auto got = allocate::allocate(machine, request, policy);
    REQUIRE(got);
    for (const Finding& finding : got->trace) {
      if (finding.what != Finding::What::kListed) continue;
      stages += std::string(stage_name(finding.stage)) + ' ' + std::to_string(finding.number) + ' ';
    }
    return stages;
  };
  CHECK(listed(packed_policy(), 5) == "cores 8 CPUs 12 ");
  CHECK(listed(fitted_policy(), 3) == "cores 1 CPUs 1 ");
}

TEST_CASE("with many nodes an even split tries those of each socket, too") {
  SplitProblem problem{.rooms = {}, .cpus = 4, .group = 1, .sockets = {}};
  for (int node = 0; node < 10; ++node) {
    problem.rooms.push_back({node, 4});
    problem.sockets.push_back(node < 8 ? 1 : 0);
  }
  using Combinations = std::vector<std::vector<int>>;
  CHECK(even_combinations(problem, 2) == Combinations{{0, 1}, {8, 9}, {0, 1}});
  problem.sockets[8] = -1;
  CHECK(even_combinations(problem, 2) == Combinations{{0, 1}, {0, 1}});
}

TEST_CASE("fitted stays within one node and L3 where packed starts in the fullest node") {
  // Free: one core of node 0, all of node 1 but one core of its second L3.
  const Machine machine = grid_machine({.sockets = 2, .cores_per_node = 4, .cores_per_l3 = 2});
  const CpuRequest four{.cpus = 4, .available = cpus("0,8,4-6,12-14")};
  CHECK(format_list(allocate::allocate(machine, four, packed_policy())->cpus) == "0,4,8,12");
  CHECK(format_list(allocate::allocate(machine, four, fitted_policy())->cpus) == "4-5,12-13");
  const CpuRequest two{.cpus = 2, .available = cpus("4-7,12-14")};
  CHECK(format_list(allocate::allocate(machine, two, fitted_policy())->cpus) == "6,14");
  const CpuRequest eight{.cpus = 8, .available = four.available};
  CHECK(allocate::allocate(machine, eight, fitted_policy())->cpus == four.available);
}
