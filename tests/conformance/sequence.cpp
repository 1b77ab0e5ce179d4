// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/sequence.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value_to.hpp>
#include <map>
#include <optional>
#include <vector>

#include "policy/allocate/allocate.hpp"
#include "policy/allocate/cpu_hints.hpp"

namespace ka::test {
namespace {

using namespace ka::policy;
using Case = boost::json::object;

std::string text(const Case& object, const char* key) {
  return boost::json::value_to<std::string>(object.at(key));
}

struct Container {
  std::string name, kind;
  int cpus = 0;
};

std::vector<Container> containers_of(const Case& step) {
  std::vector<Container> containers;
  for (const auto& value : step.at("containers").as_array()) {
    const Case& container = value.as_object();
    containers.push_back(
        {text(container, "name"), text(container, "kind"), container.at("cpus").to_number<int>()});
  }
  return containers;
}

/// podGuaranteedCPUs.
int cpus_of_pod(const std::vector<Container>& containers) {
  int sidecars = 0;
  int apps = 0;
  int starting = 0;
  for (const Container& container : containers) {
    if (container.kind == "app") apps += container.cpus;
    if (container.kind == "sidecar") sidecars += container.cpus;
    if (container.kind == "init" && container.cpus > 0) {
      starting = std::max(starting, sidecars + container.cpus);
    }
  }
  return std::max(starting, apps + sidecars);
}

using Held = std::map<std::string, CpuSet>;  // "pod/container" to CPUs

class Node {
 public:
  Node(const Machine& machine, const Case& vector)
      : machine_(machine), options_(options_of(vector)) {
    const auto* reserved = vector.if_contains("reserved");
    if (reserved != nullptr) {
      reserved_ = parse_list<CpuTag>(boost::json::value_to<std::string>(*reserved)).value();
    }
    policy_ = parse_hint_policy(text(vector, "policy")).value();
    pod_scope_ = text(vector, "scope") == "pod";
    shared_ = machine.cpus();
    if (options_.has(CpuOption::kStrictCpuReservation)) shared_ -= reserved_;
  }

  bool refused() const { return refused_options(options_, machine_, policy_).has_value(); }

  std::string run(const Case& step) {
    const std::string op = text(step, "op");
    bool admitted = true;
    if (op == "add") admitted = add(text(step, "pod"), containers_of(step));
    if (op == "remove") remove(text(step, "pod"));
    std::string state;
    for (const auto& [name, cpus] : held_) state += name + '=' + format_list(cpus) + ' ';
    return state + "shared=" + format_list(shared_) + (admitted ? "\n" : " refused\n");
  }

 private:
  /// A pod under way to its admission.
  struct Pod {
    std::string name;
    CpuSet reusable;
    std::optional<Hint> hint;  ///< of the whole pod
  };

  bool add(const std::string& name, const std::vector<Container>& containers) {
    Pod pod{name, {}, {}};
    bool admitted = true;
    if (pod_scope_ && policy_ != HintPolicy::kNone) {
      admitted = align(cpus_of_pod(containers), pod.reusable, pod.hint);
    }
    for (const Container& container : containers) {
      admitted = admitted && place(container, pod);
    }
    if (!admitted) remove(name);
    return admitted;
  }

  /// False: the topology manager refuses.
  bool align(int cpus, const CpuSet& reusable, std::optional<Hint>& aligned) const {
    HintProblem problem{.policy = policy_, .nodes = machine_.topology().nodes(), .providers = {{}}};
    if (cpus > 0) {
      problem.providers = {{{"cpu", cpu_hints(machine_, {.available = shared_ - reserved_,
                                                         .reusable = reusable,
                                                         .cpus = cpus,
                                                         .options = options_})}}};
    }
    const auto merged = merge_hints(problem);
    aligned = Hint{merged->affinity, merged->preferred};
    return merged->admit;
  }

  bool place(const Container& container, Pod& pod) {
    std::optional<Hint> hint = pod.hint;
    if (!pod_scope_ && policy_ != HintPolicy::kNone && !align(container.cpus, pod.reusable, hint)) {
      return false;
    }
    if (container.cpus == 0) return true;
    const auto answer = allocate(machine_, {.cpus = container.cpus,
                                            .available = shared_ | pod.reusable,
                                            .reserved = reserved_,
                                            .options = options_,
                                            .numa_affinity = hint ? hint->affinity : std::nullopt});
    if (!answer) return false;
    held_[pod.name + '/' + container.name] = answer->cpus;
    shared_ -= answer->cpus;
    if (container.kind == "init") {
      pod.reusable |= answer->cpus;
    } else {
      pod.reusable -= answer->cpus;
    }
    return true;
  }

  void remove(const std::string& pod) {
    CpuSet freed;
    std::erase_if(held_, [&](const auto& entry) {
      if (!entry.first.starts_with(pod + '/')) return false;
      freed |= entry.second;
      return true;
    });
    shared_ |= freed;
  }

  const Machine& machine_;
  OptionSet options_;
  CpuSet reserved_, shared_;
  HintPolicy policy_ = HintPolicy::kNone;
  bool pod_scope_ = false;
  Held held_;
};

}  // namespace

OptionSet options_of(const Case& vector) {
  OptionSet options;
  for (const auto& name : vector.at("options").as_array()) {
    options.add(parse_option(boost::json::value_to<std::string>(name)).value());
  }
  return options;
}

std::string answer_to_sequence(const Machine& machine, const Case& vector) {
  Node node(machine, vector);
  if (node.refused()) return "invalid";
  std::string answer;
  for (const auto& step : vector.at("steps").as_array()) answer += node.run(step.as_object());
  return answer;
}

std::string expected_sequence(const Case& expected) {
  if (expected.contains("invalid")) return "invalid";
  std::string answer;
  for (const auto& value : expected.at("steps").as_array()) {
    const Case& step = value.as_object();
    std::map<std::string, std::string> held;
    for (const auto& [name, cpus] : step.at("held").as_object()) {
      held[std::string(name)] = boost::json::value_to<std::string>(cpus);
    }
    for (const auto& [name, cpus] : held) answer += name + '=' + cpus + ' ';
    answer += "shared=" + text(step, "shared") + (step.contains("refused") ? " refused\n" : "\n");
  }
  return answer;
}

}  // namespace ka::test
