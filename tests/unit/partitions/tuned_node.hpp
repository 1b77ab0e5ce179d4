// SPDX-License-Identifier: Apache-2.0
// A node whose pods may request what CRI-O's annotations name, and what it shows of that.
#pragma once

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <utility>

#include "affinity/api/tuned.hpp"
#include "base/json/lookup.hpp"
#include "tests/catch.hpp"
#include "tests/unit/partitions/scene.hpp"

namespace ka::tests {

inline line::Options tuned_options(policy::plan::Grade grade = policy::plan::Grade::kBestEffort) {
  line::Options options = partition_options(true, grade);
  options.quiet.tuning_by_annotation = true;
  for (const policy::TuningKindInfo& info : policy::kTuningKinds) {
    options.settings.allow_tuning.insert(info.kind);
  }
  return options;
}

struct TunedNode : PartitionNode {
  explicit TunedNode(line::Options options = tuned_options()) : PartitionNode(std::move(options)) {}

  void request(const policy::Annotations& annotations, const std::string& pod_id = "s1") {
    policy::ledger::PodSeen pod{.id = pod_id};
    pod.annotations = annotations;
    line().handle({policy::ledger::Source::kNri, pod});
    run_loop();
  }
  /// A pod of runc, "r", with a container that owns CPUs 6-7.
  void add_plain(const std::string& cgroup_name, const policy::Annotations& annotations) {
    const std::string cgroup = "/kubepods/poduid-r/" + cgroup_name;
    node.process(300, 1, "db", "/usr/bin/db");
    node.cgroup_procs(cgroup.substr(1), "300\n");
    tree.add("/kubepods/poduid-r");
    tree.add(cgroup, {6, 7});
    tree.put(300, cgroup);
    policy::ledger::PodSeen pod{.id = "r"};
    pod.pod_uid = "uid-r";
    pod.pod_name = "shop/db";
    pod.annotations = annotations;
    line().handle({policy::ledger::Source::kNri, pod});
    REQUIRE(container("r", std::string(64, 'c'), {6, 7}, true));
    run_loop();
  }
  /// "cpu-c-states.crio.io: disable on 2-3", with the problem behind it.
  std::string shown() {
    std::string text;
    for (const auto& row : api::tuned_to_json(line().node())) {
      const std::string problem = base::text_at(row, "/problem");
      text += (text.empty() ? "" : "; ") + base::text_at(row, "/annotation") + ": " +
              base::text_at(row, "/value") + " on " + base::text_at(row, "/cpus") +
              (problem.empty() ? "" : ", not: " + problem);
    }
    return text;
  }
  auto findings(const std::string& reason) {
    const auto report = verifier().verify();
    return std::ranges::count(report.findings, reason, &line::Finding::reason);
  }
  std::string last_of(const std::string& path) const {
    std::string last;
    for (const std::string& one : socket->requests) {
      if (one.starts_with("POST " + path)) last = one.substr(path.size() + 6);
    }
    return last;
  }
};

}  // namespace ka::tests
