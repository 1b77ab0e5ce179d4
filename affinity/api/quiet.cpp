// SPDX-License-Identifier: Apache-2.0
#include "affinity/api/quiet.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <map>
#include <string>
#include <utility>

#include "affinity/messages/quiet.hpp"

namespace ka::api {
namespace {

namespace json = boost::json;

json::object kind_to_json(const policy::QuietKind& kind) {
  json::array left;
  for (const policy::QuietRest& rest : kind.left) {
    left.push_back(
        {{"name", rest.name}, {"cpus", policy::format_list(rest.cpus)}, {"why", rest.why}});
  }
  return {{"kind", kind.kind},       {"found", kind.found},           {"moved", kind.moved},
          {"left", std::move(left)}, {"left_total", kind.left_total}, {"problem", kind.problem}};
}

std::string problem_of(const line::SandboxGrade& grade) {
  if (grade.obstacle) return messages::obstacle_text(*grade.obstacle);
  if (!grade.not_realtime.empty()) return "not realtime: " + grade.not_realtime;
  return grade.refused ? messages::obstacle_text(*grade.refused) : std::string();
}

json::value partition_to_json(const board::PartitionView* partition) {
  if (partition == nullptr) return nullptr;
  return json::object{{"cpus", policy::format_list(partition->cpus)},
                      {"problem", partition->problem},
                      {"realtime_problem", partition->not_realtime},
                      {"power_problem", partition->low_power}};
}

}  // namespace

void add_grade(json::object& sandbox, const line::SandboxView& view) {
  sandbox["grade"] =
      policy::plan::grade_name(view.grade ? view.grade->in_force() : policy::plan::Grade{});
  sandbox["grade_problem"] = view.grade ? problem_of(*view.grade) : std::string();
  sandbox["partition"] = partition_to_json(view.partition);
}

json::array quiet_pods_to_json(const line::Node& node) {
  json::array pods;
  for (const line::PlainPodView& view : node.graded_pods()) {
    pods.push_back({{"id", view.pod.id},
                    {"pod_uid", view.pod.pod_uid},
                    {"pod_name", view.pod.pod_name},
                    {"handler", view.pod.handler},
                    {"cpus", policy::format_list(view.cpus)},
                    {"released", view.released},
                    {"grade", policy::plan::grade_name(view.grade.in_force())},
                    {"grade_problem", problem_of(view.grade)},
                    {"partition", partition_to_json(view.partition)}});
  }
  return pods;
}

json::object quiet_to_json(const board::QuietView& quiet) {
  json::array kinds;
  json::value cpus;
  std::string problem = quiet.trouble;
  if (quiet.state) {
    for (const policy::QuietKind& kind : quiet.state->kinds) kinds.push_back(kind_to_json(kind));
    cpus = policy::format_list(quiet.state->cpus);
    problem = quiet.state->problem;
  }
  return {{"wanted", policy::format_list(quiet.wanted)},
          {"cpus", std::move(cpus)},
          {"kinds", std::move(kinds)},
          {"problem", std::move(problem)}};
}

void add_quiet_gauges(Page& page, const line::Node& node) {
  const board::QuietView& quiet = node.board.quiet();
  const auto not_quiet = std::ranges::count_if(quiet.sandboxes, [](const auto& entry) {
    return entry.second && entry.second->reason != policy::plan::NotQuiet::kNotDedicated;
  });
  page.gauge(
      "kata_affinity_sandboxes_not_quiet",
      "Sandboxes, and pods without a VM, with grade quiet whose exclusive CPUs the host is not "
      "kept off.",
      static_cast<double>(not_quiet));
  std::map<std::string, double> left;
  if (quiet.state) {
    for (const policy::QuietKind& kind : quiet.state->kinds) {
      if (kind.problem.empty()) left[kind.kind] = kind.left_total;
    }
  }
  page.labelled(prometheus::MetricType::Gauge, "kata_affinity_quiet_left",
                "What may still run on CPUs that the host is kept off, by kind.", "kind", left);
  const auto made = std::ranges::count_if(
      node.board.partitions(), [](const auto& entry) { return entry.second.problem.empty(); });
  page.gauge("kata_affinity_partitions",
             "Sandboxes, and pods without a VM, with a cpuset partition of their own.",
             static_cast<double>(made));
}

}  // namespace ka::api
