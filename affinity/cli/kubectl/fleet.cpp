// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/kubectl/fleet.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <map>
#include <utility>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/messages/terms.hpp"

namespace ka::cli::kubectl {
namespace {

namespace json = boost::json;

/// The worst that was found about each sandbox: 1 degraded, 2 violated.
std::map<std::string, int> worst_of(const json::value& report) {
  std::map<std::string, int> worst;
  for (const json::value& finding : array_of(report, "findings")) {
    const std::string severity = text_of(finding, "severity");
    const int rank = severity == "violated" ? 2 : severity == "degraded" ? 1 : 0;
    int& known = worst[text_of(finding, "sandbox")];
    known = std::max(known, rank);
  }
  return worst;
}

/// It has exclusive containers, and each is isolated.
bool is_isolated(const json::value& sandbox) {
  long long exclusive = 0, isolated = 0;
  for (const json::value& container : array_of(sandbox, "containers")) {
    if (!flag_of(container, "exclusive") || flag_of(container, "exited")) continue;
    ++exclusive;
    if (flag_of(container, "isolated")) ++isolated;
  }
  return exclusive > 0 && exclusive == isolated;
}

std::string line_of(const NodeLine& node, std::size_t widest) {
  if (!node.problem.empty()) {
    return fmt::format("{:<{}}  {:>4}  {:>8}  {:>8}  {:>8}  {:<8}  {}\n", node.node, widest, "-",
                       "-", "-", "-", "unknown", node.problem);
  }
  return fmt::format("{:<{}}  {:>4}  {:>8}  {:>8}  {:>8}  {:<8}  {}\n", node.node, widest,
                     node.pods, node.isolated, node.degraded, node.violated, node.verdict,
                     node.version);
}

}  // namespace

NodeLine summarise(std::string node, const json::value& list, const json::value& report) {
  NodeLine line{.node = std::move(node)};
  const std::string verdict = text_of(report, "verdict");
  line.verdict = verdict.empty() ? "unknown" : verdict;
  line.version = text_of(list, "version");
  const auto worst = worst_of(report);
  for (const json::value& sandbox : array_of(list, "sandboxes")) {
    ++line.pods;
    if (is_isolated(sandbox)) ++line.isolated;
    const auto found = worst.find(text_of(sandbox, "id"));
    const int rank = found == worst.end() ? 0 : found->second;
    if (rank == 2) ++line.violated;
    if (rank == 1) ++line.degraded;
  }
  return line;
}

std::string describe_fleet(const std::vector<NodeLine>& nodes) {
  std::size_t widest = 4;
  for (const NodeLine& node : nodes) widest = std::max(widest, node.node.size());
  std::string text = fmt::format("{:<{}}  PODS  ISOLATED  DEGRADED  VIOLATED  VERDICT   VERSION\n",
                                 "NODE", widest);
  NodeLine sum;
  long long unread = 0;
  for (const NodeLine& node : nodes) {
    text += line_of(node, widest);
    unread += node.problem.empty() ? 0 : 1;
    sum.pods += node.pods;
    sum.isolated += node.isolated;
    sum.degraded += node.degraded;
    sum.violated += node.violated;
  }
  text += fmt::format("\n{}: {}, {} isolated, {} degraded, {} violated",
                      messages::counted(static_cast<long long>(nodes.size()), "node"),
                      messages::counted(sum.pods, "pod"), sum.isolated, sum.degraded, sum.violated);
  return text + (unread == 0 ? "\n" : fmt::format("; {} could not be read\n", unread));
}

json::object fleet_to_json(const std::vector<NodeLine>& nodes) {
  json::array lines;
  for (const NodeLine& node : nodes) {
    if (!node.problem.empty()) {
      lines.push_back(
          json::object{{"node", node.node}, {"verdict", "unknown"}, {"problem", node.problem}});
      continue;
    }
    lines.push_back(json::object{{"node", node.node},
                                 {"pods", node.pods},
                                 {"isolated", node.isolated},
                                 {"degraded", node.degraded},
                                 {"violated", node.violated},
                                 {"verdict", node.verdict},
                                 {"version", node.version}});
  }
  return {{"nodes", std::move(lines)}};
}

bool is_good(const std::vector<NodeLine>& nodes, bool strict) {
  return std::ranges::all_of(nodes, [strict](const NodeLine& node) {
    return node.problem.empty() &&
           (node.verdict == "ok" || (node.verdict == "degraded" && !strict));
  });
}

}  // namespace ka::cli::kubectl
