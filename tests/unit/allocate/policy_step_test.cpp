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
