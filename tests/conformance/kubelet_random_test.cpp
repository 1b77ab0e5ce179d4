// SPDX-License-Identifier: Apache-2.0
// kubelet's answers to random cases: the same CPUs, hints and merges wherever kubelet's answer is
// not changed by a defect of its own.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_to.hpp>
#include <iostream>

#include "affinity/documents/hints.hpp"
#include "affinity/documents/topology.hpp"
#include "policy/allocate/allocate.hpp"
#include "policy/allocate/cpu_hints.hpp"
#include "tests/allocate.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/sequence.hpp"
#include "tests/conformance/vectors.hpp"

using namespace ka::policy;
using namespace ka::policy::allocate;

namespace {

using Case = boost::json::object;

/// Of one kind of case.
struct Tally {
  std::size_t cases = 0;
  std::size_t agreed = 0;
};

std::string text(const Case& vector, const char* key) {
  const auto* value = vector.if_contains(key);
  return value == nullptr ? std::string() : boost::json::value_to<std::string>(*value);
}

CpuSet cpus(const Case& vector, const char* key) {
  return parse_list<CpuTag>(text(vector, key)).value();
}

NodeSet nodes(const boost::json::value& ids) {
  NodeSet set;
  for (const int id : boost::json::value_to<std::vector<int>>(ids)) set.add(id);
  return set;
}

int number(const Case& vector, const char* key, int otherwise) {
  const auto* value = vector.if_contains(key);
  return value == nullptr ? otherwise : value->to_number<int>();
}

std::string answer_to_allocation(const Machine& machine, const Case& vector) {
  CpuRequest request{.cpus = number(vector, "cpus", 0),
                     .available = cpus(vector, "available") | cpus(vector, "reusable"),
                     .reserved = cpus(vector, "reserved"),
                     .options = ka::test::options_of(vector),
                     .group_size = number(vector, "group_size", 1)};
  if (const auto* ids = vector.if_contains("numa_affinity")) request.numa_affinity = nodes(*ids);
  if (refused_options(request.options, machine, HintPolicy::kNone)) return "invalid";
  const auto answer = ka::tests::allocate_by_options(machine, request);
  return answer ? format_list(answer->cpus) : "refused";
}

std::string expected_allocation(const Case& expected) {
  if (expected.contains("invalid")) return "invalid";
  return expected.contains("refused") ? "refused" : text(expected, "cpus");
}

std::string describe(const std::vector<Hint>& hints) {
  std::string all;
  for (const Hint& hint : hints) {
    all += format_list(hint.affinity.value_or(NodeSet{})) + (hint.preferred ? "!" : "") + ' ';
  }
  return all;
}

std::string answer_to_hints(const Machine& machine, const Case& vector) {
  if (refused_options(ka::test::options_of(vector), machine, HintPolicy::kNone)) return "invalid";
  const CpuSet available = cpus(vector, "available") - cpus(vector, "reserved");
  return describe(cpu_hints(machine, {.available = available,
                                      .reusable = cpus(vector, "reusable"),
                                      .cpus = number(vector, "cpus", 0),
                                      .options = ka::test::options_of(vector)}));
}

std::string expected_hints(const Case& expected) {
  if (expected.contains("invalid")) return "invalid";
  std::vector<Hint> hints;
  for (const auto& hint : expected.at("hints").as_array()) {
    hints.push_back({nodes(hint.at("affinity")), hint.at("preferred").as_bool()});
  }
  return describe(hints);
}

std::string answer_to_merge(const Case& vector) {
  Case document;
  for (const char* key : {"policy", "numaNodes", "options", "distances", "providers"}) {
    if (const auto* value = vector.if_contains(key)) document[key] = *value;
  }
  const auto problem = ka::documents::hint_problem_from_json(document);
  if (!problem) return "invalid";
  const auto merged = merge_hints(*problem);
  return merged ? boost::json::serialize(boost::json::value(ka::documents::to_json(*merged)))
                : "invalid";
}

std::string expected_merge(const Case& expected) {
  if (expected.contains("invalid")) return "invalid";
  const Case document{{"affinity", expected.at("affinity")},
                      {"preferred", expected.at("preferred")},
                      {"admit", expected.at("admit")}};
  return boost::json::serialize(boost::json::value(document));
}

class Replay {
 public:
  void run(const Case& line) {
    const std::string op = text(line, "op");
    if (op == "topology") return remember(line);
    if (op == "about" || text(line, "list") != "main") return;
    Tally& tally = tallies_[op];
    ++tally.cases;
    const auto [expected, answer] = answers(op, line);
    INFO(text(line, "id") << ", " << text(line, "class") << " on " << text(line, "topology"));
    if (expected == answer) ++tally.agreed;
    CHECK(answer == expected);
    if (op == "seq") check_without_leak(line);
  }

  const std::map<std::string, Tally>& tallies() const { return tallies_; }

 private:
  void remember(const Case& line) {
    Case document{{"cpus", line.at("cpus")}};
    for (const char* key : {"distances", "nodes"}) {
      if (const auto* value = line.if_contains(key)) document[key] = *value;
    }
    auto topology = ka::documents::topology_from_json(document);
    REQUIRE(topology);
    machines_.emplace(text(line, "name"), *std::move(topology));
  }

  std::pair<std::string, std::string> answers(const std::string& op, const Case& line) const {
    const Case& expected = line.at("expect").as_object();
    if (op == "merge") return {expected_merge(expected), answer_to_merge(line)};
    const Machine& machine = machines_.at(text(line, "topology"));
    if (op == "alloc") return {expected_allocation(expected), answer_to_allocation(machine, line)};
    if (op == "hints") return {expected_hints(expected), answer_to_hints(machine, line)};
    using enum ka::test::InitCpus;
    return {ka::test::expected_sequence(line, kKept),
            ka::test::answer_to_sequence(machine, line, kKept)};
  }

  /// Where kubelet leaks nothing, to free init containers' CPUs changes nothing for the others.
  void check_without_leak(const Case& line) {
    using enum ka::test::InitCpus;
    if (ka::test::leaks(line)) return;
    Tally& tally = tallies_["seq, apps and sidecars"];
    ++tally.cases;
    const Machine& machine = machines_.at(text(line, "topology"));
    const std::string expected = ka::test::expected_sequence(line, kFreed);
    const std::string answer = ka::test::answer_to_sequence(machine, line, kFreed);
    if (expected == answer) ++tally.agreed;
    CHECK(answer == expected);
  }

  std::map<std::string, Machine> machines_;
  std::map<std::string, Tally> tallies_;
};

}  // namespace

TEST_CASE("every case of kubelet_random.jsonl.gz in which kubelet is right") {
  Replay replay;
  const bool found = ka::test::each_line_of(
      "kubelet_random.jsonl.gz",
      [&](const std::string& line) { replay.run(boost::json::parse(line).as_object()); });
  if (!found) return;
  for (const auto& [op, tally] : replay.tallies()) {
    std::cout << op << ": " << tally.agreed << " of " << tally.cases << " agree\n";
  }
  CHECK(replay.tallies().size() == 5);
}
