// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/sequence.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value_to.hpp>
#include <map>
#include <stdexcept>
#include <vector>

#include "policy/allocate/holdings.hpp"

namespace ka::test {
namespace {

using namespace ka::policy;
using namespace ka::policy::allocate;
using Case = boost::json::object;

std::string text(const Case& object, const char* key) {
  return boost::json::value_to<std::string>(object.at(key));
}

std::vector<PodContainer> containers_of(const Case& step) {
  std::vector<PodContainer> containers;
  for (const auto& value : step.at("containers").as_array()) {
    const Case& container = value.as_object();
    const int cpus = container.at("cpus").to_number<int>();
    if (cpus == 0) continue;  // it runs in the shared pool, which kubelet may leave empty
    containers.push_back({text(container, "name"),
                          parse_pod_part(text(container, "kind")).value(),
                          {.use = CpuUse::kExclusive, .cpus = cpus}});
  }
  return containers;
}

Alignment alignment_of(const Case& vector) {
  return {parse_hint_policy(text(vector, "policy")).value(), text(vector, "scope") == "pod"};
}

CpuSet reserved_of(const Case& vector) {
  if (!vector.contains("reserved")) return {};
  return parse_list<CpuTag>(text(vector, "reserved")).value();
}

Holdings empty_books(const Machine& machine, const Case& vector) {
  const OptionSet options = options_of(vector);
  return Holdings(machine, reserved_of(vector), options, policy_for(options), alignment_of(vector));
}

class Node {
 public:
  Node(const Machine& machine, const Case& vector, InitCpus inits)
      : machine_(machine), vector_(vector), inits_(inits), books_(empty_books(machine, vector)) {}

  std::string run(const Case& step) {
    const std::string op = text(step, "op");
    bool admitted = true;
    if (op == "add") admitted = add(text(step, "pod"), containers_of(step));
    if (op == "remove") static_cast<void>(books_.remove_pod(text(step, "pod")));
    if (op == "restart") restart();
    std::string state;
    for (const auto& [name, holding] : books_.all()) {
      if (inits_ == InitCpus::kFreed && holding.part == PodPart::kInit) continue;
      state += name + '=' + format_list(holding.cpus) + ' ';
    }
    return state + "shared=" + format_list(books_.shared_pool()) + (admitted ? "\n" : " refused\n");
  }

 private:
  bool add(const std::string& pod, const std::vector<PodContainer>& containers) {
    if (!books_.add_pod(pod, containers)) return false;
    if (inits_ == InitCpus::kFreed) static_cast<void>(books_.end_inits(pod));
    return true;
  }

  void restart() {
    Holdings restarted = empty_books(machine_, vector_);
    if (restarted.restore(books_.all())) throw std::logic_error("the books are not in order");
    books_ = std::move(restarted);
  }

  const Machine& machine_;
  const Case& vector_;
  InitCpus inits_;
  Holdings books_;
};

bool is_init(const Case& vector, std::string_view id) {
  for (const auto& step : vector.at("steps").as_array()) {
    if (text(step.as_object(), "op") != "add") continue;
    const std::string pod = text(step.as_object(), "pod");
    for (const auto& container : step.at("containers").as_array()) {
      const Case& one = container.as_object();
      if (pod + '/' + text(one, "name") == id) return text(one, "kind") == "init";
    }
  }
  return false;
}

std::string pod_of(std::string_view id) { return std::string(id.substr(0, id.find('/'))); }

/// An init container's CPU that no other container of its pod took over.
bool leaks(const Case& vector, const Case& held) {
  std::map<std::string, CpuSet> inits, others;
  for (const auto& [id, cpus] : held) {
    auto& into = is_init(vector, id) ? inits : others;
    into[pod_of(id)] |= parse_list<CpuTag>(boost::json::value_to<std::string>(cpus)).value();
  }
  return std::ranges::any_of(
      inits, [&](const auto& entry) { return !entry.second.subset_of(others[entry.first]); });
}

}  // namespace

OptionSet options_of(const Case& vector) {
  OptionSet options;
  for (const auto& name : vector.at("options").as_array()) {
    options.add(parse_option(boost::json::value_to<std::string>(name)).value());
  }
  return options;
}

bool leaks(const Case& vector) {
  if (vector.at("expect").as_object().contains("invalid")) return false;
  const auto& steps = vector.at("expect").at("steps").as_array();
  return std::ranges::any_of(
      steps, [&](const auto& step) { return leaks(vector, step.at("held").as_object()); });
}

std::string answer_to_sequence(const Machine& machine, const Case& vector, InitCpus inits) {
  if (refused_options(options_of(vector), machine, alignment_of(vector).policy)) return "invalid";
  Node node(machine, vector, inits);
  std::string answer;
  for (const auto& step : vector.at("steps").as_array()) answer += node.run(step.as_object());
  return answer;
}

std::string expected_sequence(const Case& vector, InitCpus inits) {
  const Case& expected = vector.at("expect").as_object();
  if (expected.contains("invalid")) return "invalid";
  std::string answer;
  for (const auto& value : expected.at("steps").as_array()) {
    const Case& step = value.as_object();
    std::map<std::string, std::string> held;
    for (const auto& [name, cpus] : step.at("held").as_object()) {
      if (inits == InitCpus::kFreed && is_init(vector, name)) continue;
      held[std::string(name)] = boost::json::value_to<std::string>(cpus);
    }
    for (const auto& [name, cpus] : held) answer += name + '=' + cpus + ' ';
    answer += "shared=" + text(step, "shared") + (step.contains("refused") ? " refused\n" : "\n");
  }
  return answer;
}

}  // namespace ka::test
