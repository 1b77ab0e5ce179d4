// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/kubectl/plugin.hpp"

#include <algorithm>
#include <atomic>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "affinity/cli/kubectl/fleet.hpp"
#include "affinity/cli/kubectl/kubectl.hpp"
#include "affinity/cli/kubectl/readers.hpp"
#include "base/json/json.hpp"
#include "base/path.hpp"

namespace ka::cli::kubectl {
namespace {

using base::ErrorCode;
using base::Result;

/// Calls of kubectl at a time; more would be work for the API server, and no faster.
constexpr std::size_t kAtATime = 16;

Result<std::vector<Reader>> readers_on(const Kubectl& kubectl, const PluginOptions& options,
                                       const std::string& node) {
  std::vector<std::string> words = {"pods", "--namespace=" + options.reader_namespace,
                                    kReaderLabels, kReaderColumns};
  if (!node.empty()) words.push_back("--field-selector=spec.nodeName=" + node);
  const auto lines = kubectl.get(std::move(words));
  if (!lines) return unexpected(lines.error());
  return parse_readers(*lines);
}

Result<Reader> reader_on(const Kubectl& kubectl, const PluginOptions& options,
                         const std::string& node) {
  const auto readers = readers_on(kubectl, options, node);
  if (!readers) return unexpected(readers.error());
  // A rollout may have two for a moment.
  const auto running = std::ranges::find(*readers, "Running", &Reader::phase);
  if (running != readers->end()) return *running;
  const std::string advice = "; see kubectl -n " + options.reader_namespace + " get pods -o wide";
  if (readers->empty()) {
    return base::fail(ErrorCode::kNotFound,
                      "no pod of kata-affinity reads on node " + node + advice);
  }
  return base::fail(ErrorCode::kUnavailable, "pod " + readers->front().pod + " on node " + node +
                                                 " is " + readers->front().phase + advice);
}

/// Where a command runs, and about which pod.
struct Place {
  Reader reader;
  std::string pod;  ///< NAMESPACE/NAME; empty: about the node
};

Result<Place> place_of_pod(const Kubectl& kubectl, const PluginOptions& options,
                           const Target& target) {
  std::vector<std::string> words = {
      "pod", target.name,
      R"(-o=jsonpath={.spec.nodeName}{"\t"}{.metadata.namespace}{"/"}{.metadata.name})"};
  const std::string& space =
      target.pod_namespace.empty() ? options.pod_namespace : target.pod_namespace;
  if (!space.empty()) words.push_back("--namespace=" + space);
  const auto found = kubectl.get(std::move(words));
  if (!found) return unexpected(found.error());
  const std::size_t tab = found->find('\t');
  if (tab == 0 || tab == std::string::npos) {
    return base::fail(ErrorCode::kNotFound, "pod " + target.name + " is not on a node yet");
  }
  auto reader = reader_on(kubectl, options, found->substr(0, tab));
  if (!reader) return unexpected(reader.error());
  return Place{*std::move(reader), found->substr(tab + 1)};
}

/// A node where there is one of that name, else a pod.
Result<Place> find_place(const Kubectl& kubectl, const PluginOptions& options) {
  const auto target = parse_target(options.target);
  if (!target) return unexpected(target.error());
  if (target->kind == Target::Kind::kPod) return place_of_pod(kubectl, options, *target);
  auto reader = reader_on(kubectl, options, target->name);
  if (reader) return Place{*std::move(reader), {}};
  const bool is_node = target->kind == Target::Kind::kNode;
  if (is_node || reader.error().code != ErrorCode::kNotFound) return unexpected(reader.error());
  return place_of_pod(kubectl, options, *target);
}

int run_one(const Kubectl& kubectl, const PluginOptions& options, Output& output) {
  const auto place = find_place(kubectl, options);
  if (!place) return static_cast<int>(output.fail(place.error()));
  if (options.command == "explain" && !options.cpu && place->pod.empty()) {
    return static_cast<int>(output.fail(
        {ErrorCode::kInvalid, options.target + " is a node: explain takes a pod, or --cpu N", 0}));
  }
  const auto ended = kubectl.exec(place->reader, command_in_reader(options, place->pod));
  if (!ended) return static_cast<int>(output.fail(ended.error()));
  output.print(ended->output);
  return ended->exit;
}

Result<boost::json::value> fetch(const Kubectl& kubectl, const Reader& reader,
                                 const char* command) {
  const auto text = kubectl.exec_json(reader, {"kata-affinityctl", command, "--json"});
  if (!text) return unexpected(text.error());
  return base::parse_json(*text, reader.node);
}

NodeLine read_node(const Kubectl& kubectl, const Reader& reader) {
  const auto fail = [&reader](std::string problem) {
    return NodeLine{.node = reader.node, .problem = std::move(problem)};
  };
  if (reader.phase != "Running") return fail("pod " + reader.pod + " is " + reader.phase);
  const auto report = fetch(kubectl, reader, "verify");
  if (!report) return fail(report.error().message);
  const auto list = fetch(kubectl, reader, "status");
  if (!list) return fail(list.error().message);
  return summarise(reader.node, *list, *report);
}

std::vector<NodeLine> read_nodes(const Kubectl& kubectl, const std::vector<Reader>& readers) {
  std::vector<NodeLine> lines(readers.size());
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> workers;
  for (std::size_t i = 0; i < std::min(kAtATime, readers.size()); ++i) {
    workers.emplace_back([&] {
      for (std::size_t at = next++; at < readers.size(); at = next++) {
        lines[at] = read_node(kubectl, readers[at]);
      }
    });
  }
  workers.clear();
  return lines;
}

int run_all(const Kubectl& kubectl, const PluginOptions& options, Output& output) {
  const auto readers = readers_on(kubectl, options, {});
  if (!readers) return static_cast<int>(output.fail(readers.error()));
  if (readers->empty()) {
    return static_cast<int>(
        output.fail({ErrorCode::kUnavailable,
                     "no pod of kata-affinity in namespace " + options.reader_namespace +
                         ": is the chart installed there (--reader-namespace)?",
                     0}));
  }
  const auto lines = read_nodes(kubectl, *readers);
  output.show(fleet_to_json(lines), [&lines] { return describe_fleet(lines); });
  const bool unread =
      std::ranges::any_of(lines, [](const auto& one) { return !one.problem.empty(); });
  const bool good = options.command == "verify" ? is_good(lines, options.strict) : !unread;
  return static_cast<int>(good ? Exit::kDone : Exit::kNo);
}

}  // namespace

bool is_plugin(const char* program) {
  return program != nullptr && base::base_name(program) == "kubectl-affinity";
}

int run_plugin(const PluginOptions& options, Output& output) {
  const auto kubectl = Kubectl::find(options);
  if (!kubectl) return static_cast<int>(output.fail(kubectl.error()));
  return options.all ? run_all(*kubectl, options, output) : run_one(*kubectl, options, output);
}

}  // namespace ka::cli::kubectl
