// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <sstream>

#include "affinity/cli/allocate/allocate.hpp"
#include "affinity/cli/allocate/request_sets.hpp"
#include "affinity/host/topology.hpp"
#include "base/json/json.hpp"
#include "policy/allocate/life.hpp"

namespace ka::cli {
namespace {

/// Settings that only kubelet's books have.
constexpr std::string_view kKubelet = "kubelet";

base::Result<policy::allocate::Life> empty_node(const SimulateOptions& options,
                                                const policy::allocate::Machine& machine) {
  const bool kubelet = options.strategy == kKubelet;
  const auto set = read_strategy(kubelet ? "packed" : options.strategy, options.options);
  if (!set) return unexpected(set.error());
  const policy::allocate::Alignment alignment{
      policy::allocate::parse_hint_policy(options.policy).value(), options.scope == "pod"};
  if (const auto refused = policy::allocate::refused_options(*set, machine, alignment.policy)) {
    return base::fail(base::ErrorCode::kInvalid, *refused);
  }
  auto reserved = read_set("--reserved", options.reserved, machine.topology().all());
  if (!reserved) return unexpected(std::move(reserved.error()));
  const policy::allocate::Pipeline& strategy = options.strategy == "fitted"
                                                   ? policy::allocate::fitted_policy()
                                                   : policy::allocate::policy_for(*set);
  using enum policy::allocate::Life::InitCpus;
  return policy::allocate::Life(
      machine, policy::allocate::Holdings(machine, *std::move(reserved), *set, strategy, alignment),
      kubelet ? kKept : kFreed);
}

/// A line of the trace.
struct Step {
  std::string op, pod, container;
  int cpus = 0;
  std::vector<policy::allocate::PodContainer> containers;
};

/// A container without CPUs of its own runs in the shared pool, and is not in the books.
void read_container(const boost::json::value& value, const std::string& path,
                    base::InputError& input_error, Step& step) {
  base::Fields fields(value, path, input_error);
  policy::allocate::PodContainer container;
  container.request.use = policy::allocate::CpuUse::kExclusive;
  std::string kind = "app";
  fields.require({"name", "cpus"});
  fields.read("name", container.name);
  fields.read("kind", kind);
  fields.read("cpus", container.request.cpus);
  fields.finish();
  const auto part = policy::allocate::parse_pod_part(kind);
  if (!part) fields.reject("kind", "must be init, sidecar or app");
  container.part = part.value_or(policy::allocate::PodPart::kApp);
  if (container.request.cpus > 0) step.containers.push_back(std::move(container));
}

void require_of(const std::string& op, base::Fields& fields) {
  if (op == "add") return fields.require({"pod", "containers"});
  if (op == "remove") return fields.require({"pod"});
  if (op == "resize") return fields.require({"pod", "container", "cpus"});
  if (op != "restart") fields.reject("op", "must be add, remove, resize or restart");
}

base::Result<Step> read_step(const boost::json::value& document) {
  base::InputError input_error;
  base::Fields fields(document, "", input_error);
  Step step;
  fields.require({"op"});
  fields.read("op", step.op);
  fields.read("pod", step.pod);
  fields.read("container", step.container);
  fields.read("cpus", step.cpus);
  fields.each("containers", [&](const boost::json::value& value, const std::string& path) {
    read_container(value, path, input_error, step);
  });
  if (input_error.empty()) require_of(step.op, fields);
  fields.finish();
  if (!input_error.empty()) return unexpected(input_error.error());
  return step;
}

boost::json::object refused(const policy::allocate::Refusal& refusal) {
  return {{"refused", policy::allocate::refusal_text(refusal)}};
}

boost::json::object added(policy::allocate::Life& node, const Step& step) {
  const auto got = node.add(step.pod, step.containers);
  if (!got) return refused(got.error());
  boost::json::object cpus;
  for (const auto& [name, set] : *got) cpus[name] = policy::format_list(set);
  return {{"cpus", std::move(cpus)}};
}

boost::json::object resized(policy::allocate::Life& node, const Step& step) {
  const auto got = node.resize(step.pod, step.container, step.cpus);
  if (!got) return refused(got.error());
  return {{"cpus", boost::json::object{{step.container, policy::format_list(*got)}}}};
}

boost::json::object done(policy::allocate::Life& node, const Step& step) {
  if (step.op == "add") return added(node, step);
  if (step.op == "resize") return resized(node, step);
  if (step.op == "restart") {
    const auto wrong = node.restart();
    return wrong ? boost::json::object{{"refused", *wrong}} : boost::json::object{};
  }
  // A pod that was refused may still be in the trace of a node that admitted it.
  return node.remove(step.pod) ? boost::json::object{} : boost::json::object{{"absent", true}};
}

boost::json::object answer(policy::allocate::Life& node, const Step& step) {
  boost::json::object document{{"op", step.op}};
  if (!step.pod.empty()) document["pod"] = step.pod;
  for (auto& [key, value] : done(node, step)) document[key] = std::move(value);
  document["shared_pool"] = policy::format_list(node.books().shared_pool());
  return document;
}

/// The mean of what `broken` was after each step, and its last value.
struct Broken {
  double sum = 0;
  int steps = 0;
  double last = 0;
};

boost::json::object summary(const policy::allocate::Toll& toll, const Broken& broken) {
  const double mean = broken.steps == 0 ? 0 : broken.sum / broken.steps;
  return {{"pods", toll.pods},
          {"refused", toll.refused},
          {"containers", toll.containers},
          {"split_nodes", toll.split_nodes},
          {"split_sockets", toll.split_sockets},
          {"split_l3s", toll.split_l3s},
          {"split_cores", toll.split_cores},
          {"free_on_broken_cores", broken.last},
          {"free_on_broken_cores_mean", mean}};
}

std::string describe(const boost::json::object& step) {
  std::string text(step.at("op").as_string());
  if (const auto* pod = step.if_contains("pod")) text += ' ' + std::string(pod->as_string());
  if (const auto* reason = step.if_contains("refused")) {
    return text + ": refused: " + std::string(reason->as_string()) + '\n';
  }
  if (step.contains("absent")) return text + ": not found\n";
  if (const auto* cpus = step.if_contains("cpus")) {
    const char* separator = ": ";
    for (const auto& [name, set] : cpus->as_object()) {
      text += separator + std::string(name) + ' ' + std::string(set.as_string());
      separator = "; ";
    }
  }
  return text + '\n';
}

std::string describe(const policy::allocate::Toll& toll, const Broken& broken) {
  const double mean = broken.steps == 0 ? 0 : broken.sum / broken.steps;
  return fmt::format(
      "{} pods, {} refusals; {} containers with CPUs of their own, of which split over\n"
      "nodes {}, sockets {}, L3 caches {}, cores {}\n"
      "free CPUs on broken cores: {:.1f} % at the end, {:.1f} % on average\n",
      toll.pods, toll.refused, toll.containers, toll.split_nodes, toll.split_sockets,
      toll.split_l3s, toll.split_cores, 100 * broken.last, 100 * mean);
}

/// The answers to all lines; the error names the malformed line.
base::Result<boost::json::array> run_trace(const std::string& name, const std::string& text,
                                           policy::allocate::Life& node, Broken& broken) {
  boost::json::array answers;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto document = base::parse_json(line, display_name(name), number);
    if (!document) return unexpected(document.error());
    const auto step = read_step(*document);
    if (!step) {
      return unexpected(
          about_input(display_name(name) + ':' + std::to_string(number), step.error()));
    }
    answers.push_back(answer(node, *step));
    broken.last = node.broken();
    broken.sum += broken.last;
    ++broken.steps;
  }
  return answers;
}

}  // namespace

Exit run(const SimulateOptions& options, Output& output) {
  auto topology = host::load_topology(options.topology);
  if (!topology) return output.fail(topology.error());
  const policy::allocate::Machine machine(*std::move(topology));
  auto node = empty_node(options, machine);
  if (!node) return output.fail(node.error());
  const auto text = read_input(options.trace);
  if (!text) return output.fail(text.error());
  Broken broken;
  auto answers = run_trace(options.trace, *text, *node, broken);
  if (!answers) return output.fail(answers.error());
  const auto describe_all = [&] {
    std::string all;
    for (const auto& step : *answers) all += describe(step.as_object());
    return all + describe(node->toll(), broken);
  };
  std::string people = output.json() ? std::string() : describe_all();
  output.show(boost::json::object{{"steps", *std::move(answers)},
                                  {"summary", summary(node->toll(), broken)}},
              [&people] { return people; });
  return Exit::kDone;
}

}  // namespace ka::cli
