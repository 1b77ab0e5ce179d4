// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/checks.hpp"

#include <boost/json/parse.hpp>

#include "tests/catch.hpp"
#include "tests/unit/cli/selftest/scene.hpp"

using namespace ka;
using namespace ka::cli::selftest;
using tests::cpus;

namespace {

const Subject kSubject{"u", 2};

Assignments assigned() { return {cpus("0-1,4-7"), {{"u", "app", cpus("2-3")}}}; }

Reading right() {
  Reading reading;
  reading.sandbox = "s";
  reading.containers = {{"app", "c"}};
  reading.own = {{10, "vCPU", cpus("0-1,4-7")},
                 {11, "vCPU", cpus("2")},
                 {12, "vCPU", cpus("3")},
                 {13, "VMM", cpus("0-1,4-7")}};
  reading.others = {{20, "container app", cpus("0-1,4-7")}};
  return reading;
}

boost::json::value object(const char* text) { return boost::json::parse(text); }

DaemonWord agreeing() {
  return {object(R"({"exclusive":"2-3","shared_pool":"0-1,4-7"})"),
          object(R"({"sandboxes":[{"id":"s","pod_uid":"u","source":"nri","threads":[
            {"tid":10,"actual":"0-1,4-7"},{"tid":11,"actual":"2"},{"tid":12,"actual":"3"},
            {"tid":13,"actual":"0-1,4-7"}],
            "vcpus":[{"role":"floating","cpus":"0-1,4-7"},{"role":"dedicated","cpus":"2"},
                     {"role":"dedicated","cpus":"3"}],
            "containers":[{"exclusive":true,"isolated":true,"obstacles":[]}]}]})"),
          object(R"({"verdict":"ok","findings":[]})")};
}

/// The findings that do not hold: "broken kernel: ..." one a line.
std::string amiss(const Findings& findings) {
  std::string text;
  for (const Finding& one : findings) {
    if (one.level == Finding::Level::kHolds) continue;
    text += fmt::format("{} {}: {}\n", level_name(one.level), witness_name(one.by), one.text);
  }
  return text;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string masks_amiss(const Reading& reading) {
  return amiss(check_masks(assigned(), kSubject, reading));
}

std::string word_amiss(const DaemonWord& word, const Reading& reading = right()) {
  return amiss(check_report(assigned(), kSubject, reading, word));
}

}  // namespace

TEST_CASE("self-test, checks: everything as it must be") {
  CHECK(amiss(check_assignment(assigned(), kSubject)).empty());
  CHECK(masks_amiss(right()).empty());
  CHECK(word_amiss(agreeing()).empty());
}

TEST_CASE("self-test, checks: kubelet assigned another number of CPUs") {
  CHECK(contains(amiss(check_assignment(assigned(), {"u", 3})), "broken kubelet"));
  CHECK(contains(amiss(check_assignment(assigned(), {"other", 2})),
                 "the pod has 0 CPUs by kubelet's state"));
}

TEST_CASE("self-test, checks: without kubelet nobody keeps other containers off") {
  constexpr Finding::By kRuntime = Finding::By::kRuntime;
  const Subject subject{"u", 2, kRuntime};
  CHECK(amiss(check_assignment(assigned(), subject)).empty());
  CHECK(amiss(check_report(assigned(), subject, right(), agreeing())).empty());
  CHECK(contains(amiss(check_assignment(assigned(), {"u", 3, kRuntime})),
                 "broken runtime: the pod has 2 CPUs by the containers' specs"));
  Reading reading = right();
  reading.others.front().cpus = cpus("0-7");
  CHECK(
      contains(amiss(check_masks(assigned(), subject, reading)), "degraded kernel: only kubelet"));
  CHECK(contains(masks_amiss(reading), "broken kernel: threads of other pods"));
  reading.others.push_back({21, "VMM", cpus("0-7")});
  CHECK(contains(amiss(check_masks(assigned(), subject, reading)), "broken kernel"));
}

TEST_CASE("self-test, checks: a thread may leave the pod's CPUs and the pool") {
  Assignments assignments = assigned();
  assignments.claims.push_back({"v", "app", cpus("7")});
  assignments.pool = cpus("0-1,4-6");
  const auto text = amiss(check_masks(assignments, kSubject, right()));
  CHECK(contains(text, "broken kernel: may run outside the pod's CPUs 2-3"));
  CHECK(contains(text, "VMM 13 on 0-1,4-7"));
}

TEST_CASE("self-test, checks: a CPU without a vCPU bound to it") {
  Reading reading = right();
  reading.own[2].cpus = cpus("2-3");
  const auto text = masks_amiss(reading);
  CHECK(contains(text, "broken kernel: no vCPU is bound to CPU 3"));
  CHECK(contains(text, "vCPU 12 on 2-3"));
}

TEST_CASE("self-test, checks: pinned, but not isolated") {
  Reading reading = right();
  reading.own[3].cpus = cpus("2-3");
  CHECK(masks_amiss(reading).starts_with(
      "degraded kernel: not isolated: 1 other threads of the VM may run on CPUs 2-3: VMM 13"));
  DaemonWord word = agreeing();
  auto& sandbox = word.sandboxes.at("sandboxes").at(0);
  sandbox.at_pointer("/threads/3/actual") = "2-3";
  CHECK(contains(word_amiss(word, reading),
                 "broken daemon: the container is isolated; but the kernel"));
  sandbox.at_pointer("/containers/0/isolated") = false;
  sandbox.at_pointer("/containers/0/obstacles") =
      boost::json::parse(R"([{"reason":"housekeeping"}])");
  CHECK(word_amiss(word, reading) ==
        "degraded daemon: the container is not isolated: housekeeping\n");
}

TEST_CASE("self-test, checks: another pod's thread on the pod's CPUs") {
  Reading reading = right();
  reading.others[0].cpus = cpus("0-7");
  CHECK(masks_amiss(reading) ==
        "broken kernel: threads of other pods may run on CPUs 2-3: container app 20 on 0-7\n");
}

TEST_CASE("self-test, checks: unread threads are not good") {
  Reading reading = right();
  reading.unread = 1;
  CHECK(contains(masks_amiss(reading), "could not be read"));
  reading = right();
  reading.own.erase(reading.own.begin(), reading.own.begin() + 3);
  CHECK(contains(masks_amiss(reading), "KVM has no vCPU"));
  CHECK(contains(masks_amiss({}), "containerd has no task for the pod"));
}

TEST_CASE("self-test, checks: the daemon's report differs") {
  DaemonWord word = agreeing();
  word.node.at_pointer("/exclusive") = "2";
  CHECK(contains(word_amiss(word), "exclusive CPUs 2; by kubelet's state: 2-3"));
  word = agreeing();
  word.sandboxes.at_pointer("/sandboxes/0/threads/1/actual") = "4";
  CHECK(contains(word_amiss(word), "not the kernel's, for vCPU 11 on 2"));
  word = agreeing();
  word.sandboxes.at_pointer("/sandboxes/0/vcpus/2/role") = "floating";
  CHECK(contains(word_amiss(word), "dedicated to CPUs 2; the kernel has vCPUs bound to 2-3"));
  word = agreeing();
  word.report = object(R"({"verdict":"violated","findings":[
      {"severity":"violated","invariant":"I2","sandbox":"t","text":"no"}]})");
  CHECK(contains(word_amiss(word), "verify: violated: I2 t: no"));
  word.sandboxes = object(R"({"sandboxes":[]})");
  CHECK(contains(word_amiss(word), "does not report the pod"));
}
