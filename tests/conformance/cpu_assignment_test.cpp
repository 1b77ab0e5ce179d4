// SPDX-License-Identifier: Apache-2.0
// kubelet's own tables for its static policy: the same cpuset, error or order for every case.
#include <boost/json/value_to.hpp>

#include "policy/allocate/allocate.hpp"
#include "tests/allocate.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/vectors.hpp"

using namespace ka::policy;
using namespace ka::policy::allocate;

namespace {

using Case = boost::json::object;

std::string text(const Case& vector, const char* key) {
  return boost::json::value_to<std::string>(vector.at(key));
}

std::vector<int> numbers(const Case& vector, const char* key) {
  return boost::json::value_to<std::vector<int>>(vector.at(key));
}

CpuSet cpus(const std::string& list) { return parse_list<CpuTag>(list).value(); }

std::vector<int> whole_ids(const Machine& machine, const Case& vector, CpuLevel level) {
  const FreeCpus free(machine, cpus(text(vector, "available")));
  std::vector<int> ids;
  for (const int group : free.whole_groups(level)) ids.push_back(machine.group(level, group).id);
  return ids;
}

void check_order(const Machine& machine, const Case& vector, const std::string& kind) {
  const std::map<std::string, CpuLevel> levels{{"freeSockets", CpuLevel::kSocket},
                                               {"freeNUMANodes", CpuLevel::kNode},
                                               {"freeCores", CpuLevel::kCore},
                                               {"freeCPUs", CpuLevel::kCpu}};
  std::vector<int> ids = whole_ids(machine, vector, levels.at(kind));
  if (!vector.contains("expect_sorted")) {
    CHECK(ids == numbers(vector, "expect"));
    return;
  }
  std::ranges::sort(ids);
  CHECK(ids == numbers(vector, "expect_sorted"));
}

void check_two_orders(const Machine& machine, const Case& vector) {
  CHECK(whole_ids(machine, vector, CpuLevel::kSocket) == numbers(vector, "expectSockets"));
  CHECK(whole_ids(machine, vector, CpuLevel::kNode) == numbers(vector, "expectNUMANodes"));
}

void check_takes(const Machine& machine, const Case& vector) {
  const CpuRequest request{.cpus = vector.at("numCPUs").to_number<int>(),
                           .available = cpus(text(vector, "available"))};
  Cycle cycle(machine, request);
  for (const auto& take : vector.at("takes").as_array()) {
    cycle.take(cpus(boost::json::value_to<std::string>(take)));
  }
  CHECK((cycle.needed < 1) == vector.at("expectSatisfied").as_bool());
  CHECK((cycle.needed > cycle.pools.front().size()) == vector.at("expectFailed").as_bool());
}

CpuRequest request_of(const Case& vector) {
  CpuRequest request{.cpus = vector.at("numCPUs").to_number<int>(),
                     .available = cpus(text(vector, "available"))};
  if (const auto* group = vector.if_contains("cpuGroupSize")) {
    request.group_size = group->to_number<int>();
    request.options.add(CpuOption::kDistributeAcrossNuma);
  }
  if (!vector.contains("options")) return request;
  for (const auto& [name, value] : vector.at("options").as_object()) {
    if (!value.as_bool()) continue;
    if (name == "PreferAlignByUncoreCacheOption") {
      request.options.add(CpuOption::kPreferAlignByUncoreCache);
    } else if (name == "DistributeCPUsAcrossCores") {
      request.options.add(CpuOption::kDistributeAcrossCores);
    } else {
      FAIL("unknown option " << std::string(name));
    }
  }
  return request;
}

void check_assignment(const Machine& machine, const Case& vector) {
  const auto answer = ka::tests::allocate_by_options(machine, request_of(vector));
  const std::string error = text(vector, "expErr");
  if (error.empty()) {
    REQUIRE(answer);
    CHECK(format_list(answer->cpus) == text(vector, "expResult"));
  } else {
    REQUIRE_FALSE(answer);
    CHECK(refusal_text(answer.error()) == error);
  }
}

}  // namespace

TEST_CASE("every case of kubelet_cpu_assignment.json") {
  const auto vectors = ka::test::conformance_vectors("kubelet_cpu_assignment.json");
  if (!vectors) return;
  const auto machines = ka::test::machines_of(*vectors);
  const auto& cases = vectors->at("cases").as_array();
  ka::test::say_count("kubelet_cpu_assignment.json", cases.size(), 81);
  for (const auto& value : cases) {
    const Case& vector = value.as_object();
    const std::string kind = text(vector, "kind");
    const Machine& machine = machines.at(text(vector, "topology"));
    INFO(kind << ": " << text(vector, "name"));
    if (kind == "freeSocketsAndNUMANodes") {
      check_two_orders(machine, vector);
    } else if (kind == "accTake") {
      check_takes(machine, vector);
    } else if (kind.starts_with("free")) {
      check_order(machine, vector, kind);
    } else {
      check_assignment(machine, vector);
    }
  }
}
