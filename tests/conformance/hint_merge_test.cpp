// SPDX-License-Identifier: Apache-2.0
// kubelet's own tables for the merge of topology hints.
#include <boost/json/value_to.hpp>

#include "policy/allocate/hints.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/vectors.hpp"
#include "tests/kubelet_order.hpp"

using namespace ka::policy;
using namespace ka::policy::allocate;

namespace {

using boost::json::value;

NodeSet nodes(const value& list) {
  NodeSet set;
  for (const auto& node : list.as_array()) set.add(node.to_number<int>());
  return set;
}

Hint hint(const value& object) {
  const auto& fields = object.as_object();
  Hint read{.affinity = {}, .preferred = fields.at("preferred").as_bool()};
  if (!fields.at("affinity").is_null()) read.affinity = nodes(fields.at("affinity"));
  return read;
}

std::vector<Hint> hints(const value& list) {
  std::vector<Hint> read;
  for (const auto& object : list.as_array()) read.push_back(hint(object));
  return read;
}

ProviderHints provider(const value& resources) {
  ProviderHints read;
  if (resources.is_null()) return read;
  for (const auto& [name, list] : resources.as_object()) {
    read.push_back({std::string(name), std::nullopt});
    if (!list.is_null()) read.back().hints = hints(list);
  }
  return read;
}

std::string text(const value& object, const char* key) {
  return boost::json::value_to<std::string>(object.at(key));
}

void check_merge(const value& vector) {
  INFO(text(vector, "policy") << ": " << text(vector, "name"));
  HintProblem problem;
  problem.policy = parse_hint_policy(text(vector, "policy")).value();
  problem.nodes = nodes(vector.at("numaNodes"));
  for (const auto& resources : vector.at("providers").as_array()) {
    problem.providers.push_back(provider(resources));
  }
  const auto merged = merge_hints(problem);
  REQUIRE(merged);
  const Hint expected = hint(vector.at("expected"));
  CHECK(merged->affinity == expected.affinity);
  CHECK(merged->preferred == expected.preferred);
}

void check_comparison(const value& vector) {
  INFO(text(vector, "name"));
  std::optional<Hint> current;
  if (!vector.at("current").is_null()) current = hint(vector.at("current"));
  const bool taken = ka::test::replaces(hint(vector.at("candidate")), current,
                                        vector.at("bestNonPreferred").to_number<int>());
  CHECK(taken == (text(vector, "expected") == "candidate"));
}

}  // namespace

TEST_CASE("every case of kubelet_topology_hint_merge.json") {
  const auto vectors = ka::test::conformance_vectors("kubelet_topology_hint_merge.json");
  if (!vectors) return;
  const auto& merges = vectors->at("merge").as_array();
  const auto& counts = vectors->at("maxOfMinAffinityCounts").as_array();
  const auto& comparisons = vectors->at("compareHints").as_array();
  ka::test::say_count("kubelet_topology_hint_merge.json",
                      merges.size() + counts.size() + comparisons.size(), 71);
  for (const auto& vector : merges) check_merge(vector);
  for (const auto& vector : counts) {
    std::vector<std::vector<Hint>> resources;
    for (const auto& list : vector.at("hints").as_array()) resources.push_back(hints(list));
    CHECK(ka::test::best_affinity_count(resources) == vector.at("expected").to_number<int>());
  }
  for (const auto& vector : comparisons) check_comparison(vector);
}
