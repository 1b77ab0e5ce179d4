// SPDX-License-Identifier: Apache-2.0
// grade = "quiet" as pods request it by annotation.
#include "tests/unit/quiet/scene.hpp"

using namespace ka;
using policy::GradeRequest;
using policy::plan::Grade;
using Sets = std::vector<std::string>;

namespace {

line::Options allowing(std::set<Grade> grades) {
  line::Options options = tests::at_home();
  options.quiet.by_annotation = true;
  options.settings.allow_grades = std::move(grades);
  return options;
}

struct Scene : tests::QuietScene {
  explicit Scene(line::Options options) : QuietScene(std::move(options)) {
    helper->requests.clear();
  }

  /// As NRI reports it, of a VM sandbox that is there or of a pod without a VM.
  void request(const std::string& pod_id, GradeRequest grade) {
    policy::ledger::PodSeen pod{.id = pod_id};
    pod.pod_name = "shop/" + pod_id;
    pod.requested_grade = grade;
    line().handle({policy::ledger::Source::kNri, std::move(pod)});
    run_loop();
  }

  /// What verify has about grades: severity and text of each.
  std::string findings() {
    std::string text;
    for (const line::Finding& finding : verifier().verify().findings) {
      if (finding.invariant != "grade" || finding.reason == "guest-not-quiet") continue;
      text += std::string(line::severity_name(finding.severity)) + ": " + finding.text + '\n';
    }
    return text;
  }
};

constexpr const char* kRefused =
    "its annotation requests quiet, which allow_annotations or allow_grades does not allow";

}  // namespace

TEST_CASE("a pod is quiet by its annotation where that is allowed, with a VM or without") {
  Scene scene(allowing({Grade::kQuiet}));
  scene.request("a", GradeRequest::kQuiet);
  scene.request("r", GradeRequest::kQuiet);
  scene.own("a", {2, 3});
  scene.own("b", {4});
  scene.own("r", {5});
  CHECK(scene.grade("a") == "quiet");
  CHECK(scene.grade("b") == "best-effort");
  CHECK(scene.helper->requested() == Sets{"2-3", "2-3,5"});
  CHECK(scene.findings().empty());
}

TEST_CASE("a request survives a restart, and counts when it is allowed later") {
  Scene scene(tests::at_home());
  scene.request("a", GradeRequest::kQuiet);
  scene.own("a", {2, 3});
  CHECK(scene.helper->requested().empty());
  scene.quiet.reset();
  scene.start();
  scene.follow();
  CHECK(scene.grade("a") == kRefused);
  scene.line().configure(allowing({Grade::kQuiet}));
  scene.run_loop();
  CHECK(scene.helper->requested().back() == "2-3");
  CHECK(scene.grade("a") == "quiet");
}

TEST_CASE("a request that is not allowed changes nothing, and is said once") {
  line::Options options = allowing({Grade::kQuiet});
  const bool of_pods = GENERATE(true, false);
  if (of_pods) {
    options.quiet.by_annotation = false;
  } else {
    options.settings.allow_grades = {Grade::kBestEffort};
  }
  Scene scene(options);
  scene.request("a", GradeRequest::kQuiet);
  scene.request("r", GradeRequest::kQuiet);
  scene.own("a", {2, 3});
  scene.own("r", {5});
  scene.check_drift();
  CHECK(scene.helper->requested().empty());
  CHECK(scene.grade("a") == kRefused);
  CHECK(scene.count("grade-refused") == 2);
  CHECK(scene.count("not-quiet") == 0);
  CHECK(scene.findings() == "note: pod shop/a: " + std::string(kRefused) +
                                "\nnote: pod shop/r: " + std::string(kRefused) + '\n');
  CHECK_FALSE(scene.requests().release("r"));
}

TEST_CASE("a value that is no grade changes nothing, and is said once") {
  line::Options options = allowing({Grade::kQuiet, Grade::kBestEffort});
  options.quiet.namespaces = {"shop"};
  Scene scene(options);
  scene.request("a", GradeRequest::kUnknown);
  scene.own("a", {2, 3});
  CHECK(scene.helper->requested() == Sets{"2-3"});
  CHECK(scene.grade("a") == "quiet");
  CHECK(scene.count("grade-refused") == 1);
  CHECK(scene.findings() == "note: pod shop/a: its annotation names an unknown grade\n");
}

TEST_CASE("a pod may give up the grade of its namespace where that is allowed") {
  line::Options options = allowing({Grade::kBestEffort});
  options.quiet.namespaces = {"shop"};
  Scene scene(options);
  scene.request("a", GradeRequest::kBestEffort);
  scene.request("b", GradeRequest::kNone);
  scene.own("a", {2, 3});
  scene.own("b", {4});
  CHECK(scene.helper->requested() == Sets{"4"});
  CHECK(scene.grade("a") == "best-effort");
  scene.line().configure([] {
    line::Options other = allowing({});
    other.quiet.namespaces = {"shop"};
    return other;
  }());
  scene.run_loop();
  CHECK(scene.helper->requested().back() == "2-4");
  CHECK(scene.findings().find("requests best-effort, which") != std::string::npos);
}
