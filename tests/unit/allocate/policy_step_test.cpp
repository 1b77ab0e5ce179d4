// SPDX-License-Identifier: Apache-2.0
// The worked example of docs/understand/allocation.md, word for word, and the proof that it works.
#include "policy/allocate/allocate.hpp"

#include <fstream>
#include <iterator>

#include "tests/catch.hpp"
#include "tests/machines.hpp"

// Begin of the example.
namespace example {

using namespace ka::policy;
using namespace ka::policy::allocate;

/// How much worse a candidate is for each of its CPUs that is near an interrupt. The built-in
/// scores are positions in a list, so this outweighs any of them.
constexpr double kPenalty = 10000;

/// A policy that keeps containers off the L3 caches of the CPUs that serve a network card.
Pipeline away_from_interrupts(const Machine& machine, const CpuSet& interrupts) {
  CpuSet near;
  for (const int cpu : interrupts)
    near |= machine.topology().l3_cpus(machine.topology().find(cpu)->l3);
  const auto score = [near](Cycle& cycle) {
    for (Candidate& candidate : cycle.candidates) {
      candidate.score += kPenalty * (candidate.cpus & near).size();
    }
  };
  return packed_policy().with({.phase = Phase::kScore,
                               .name = "away-from-interrupts",
                               .summary = "CPUs that share no L3 with an interrupt",
                               .run = score});
}

}  // namespace example
// End of the example.

using namespace ka::policy;
using namespace ka::policy::allocate;

namespace {

std::string answer(const Machine& machine, const Pipeline& policy, int cpus) {
  const auto answer =
      allocate::allocate(machine, {.cpus = cpus, .available = machine.cpus()}, policy);
  return answer ? format_list(answer->cpus) : refusal_text(answer.error());
}

}  // namespace

TEST_CASE("the example's step changes which CPUs are taken, not how many") {
  const Machine machine = ka::test::grid_machine({.cores_per_node = 4, .cores_per_l3 = 2});
  const Pipeline quiet = example::away_from_interrupts(machine, {0});
  CHECK(answer(machine, packed_policy(), 2) == "0,4");
  CHECK(answer(machine, quiet, 2) == "2,6");
  CHECK(answer(machine, quiet, 3) == "2-3,6");
  CHECK(answer(machine, quiet, 5) == "0,2-3,6-7");
  CHECK(answer(machine, quiet, 8) == "0-7");
}

TEST_CASE("a policy is made of steps by name, and one of another room takes the place of one") {
  const Machine machine = ka::test::grid_machine({.cores_per_node = 4, .cores_per_l3 = 2});
  std::vector<std::string> names;
  for (const Step& step : packed_policy().steps) names.emplace_back(step.name);
  const auto same = policy_of(names);
  REQUIRE(same);
  CHECK(answer(machine, *same, 3) == answer(machine, packed_policy(), 3));
  std::erase(names, "rank");
  const auto last_first = policy_of(names)->with(
      {.phase = Phase::kScore, .name = "last-first", .summary = {}, .run = [](Cycle& cycle) {
         for (Candidate& candidate : cycle.candidates) candidate.score -= candidate.cpus.last();
       }});
  CHECK(answer(machine, last_first, 2) == "3,7");
  SECTION("what is unknown or needed is an error") {
    CHECK(policy_of({"best"}).error() == "no step is called best");
    std::erase(names, "reserved");
    CHECK(policy_of(names).error() == "the step reserved is missing");
  }
}

TEST_CASE("a policy of the fewest steps gives what is free and not reserved") {
  const Machine machine = ka::test::grid_machine({.sockets = 2, .cores_per_l3 = 2});
  const std::vector<std::string> needed{"coarse-to-fine", "reserved",    "spill",
                                        "count-free",     "single-cpus", "take-fitting",
                                        "keep-packed"};
  for (const std::string_view step : step_names()) {
    CAPTURE(step);
    std::vector<std::string> names = needed;
    names.emplace_back(step);
    const auto policy = policy_of(names);
    REQUIRE(policy);
    const CpuRequest request{.cpus = 5, .available = machine.cpus(), .reserved = {0, 8}};
    const auto answer = allocate::allocate(machine, request, *policy);
    REQUIRE(answer);
    CHECK(answer->cpus.size() == 5);
    CHECK_FALSE(answer->cpus.intersects(request.reserved));
  }
}

TEST_CASE("the manual shows the example as compiled here") {
  const auto read = [](const std::string& file) {
    std::ifstream stream(KA_SOURCE_DIR "/" + file);
    return std::string{std::istreambuf_iterator<char>(stream), {}};
  };
  const std::string source = read("tests/unit/allocate/policy_step_test.cpp");
  const std::string begin = "// Begin of the example.\n";
  const std::size_t from = source.find(begin) + begin.size();
  const std::string example = source.substr(from, source.find("// End of the example.") - from);
  CHECK(example.size() > 500);
  CHECK(read("docs/understand/allocation.md").find("```cpp\n" + example + "```") !=
        std::string::npos);
}
