// SPDX-License-Identifier: Apache-2.0
#include "affinity/managed/takeover.hpp"

#include "tests/unit/managed/scene.hpp"

using namespace ka;
using namespace ka::tests;
using managed::Takeover;
using policy::CpuSet;
using policy::ledger::Event;
using policy::ledger::Source;

namespace {

const policy::Topology& machine() {
  static const policy::Topology topology = ka::test::grid_machine({}).topology();
  return topology;
}

nri::Described running(const std::string& id, int cpus, const CpuSet& on) {
  nri::Described one = container(id, cpus);
  one.cpus = on;
  return one;
}

/// "c1 2-3; c2 0-1 <- 0-3": what each would have, and from where it would move.
std::string show(const Takeover& takeover) {
  const auto trial = takeover.trial(machine());
  if (!trial) return trial.error().message;
  std::string text;
  for (const auto& place : trial->containers) {
    text +=
        (text.empty() ? "" : "; ") + place.entry.about.id + ' ' + policy::format_list(place.cpus);
    for (const auto& move : trial->moves) {
      if (move.entry.about.id != place.entry.about.id) continue;
      text += " <- " + policy::format_list(move.from);
    }
  }
  return text;
}

}  // namespace

TEST_CASE("who owns CPUs keeps them in managed mode, and others are named that would move") {
  Takeover takeover({});
  CHECK(show(takeover) == "the runtime has not reported its containers (NRI)");
  takeover.synchronize(
      {running("own", 2, {2, 3}), running("shared", 0, {0, 1, 4, 5, 6, 7}), running("free", 0, {})},
      {});
  CHECK(show(takeover) == "free 0-1,4-7 <- 0-7; own 2-3; shared 0-1,4-7");
}

TEST_CASE("each container has the quality of service of its pod") {
  Takeover takeover({});
  auto burstable = running("b", 2, {});
  burstable.pod_cgroup = "/kubepods/burstable/pod-b";
  takeover.synchronize({burstable, running("own", 2, {2, 3})}, {});
  const auto trial = takeover.trial(machine());
  REQUIRE(trial);
  REQUIRE(trial->containers.size() == 2);
  CHECK_FALSE(trial->containers.front().entry.about.guaranteed);
  CHECK(trial->containers.back().entry.about.guaranteed);
}

TEST_CASE("the containers are those that the runtime has now, with their sets of now") {
  Takeover takeover({});
  takeover.synchronize({running("own", 2, {2, 3})}, {});
  REQUIRE(takeover.create(running("late", 1, {4})));
  CHECK_FALSE(takeover.adopt(running("missed", 0, {0, 1})));
  CHECK(show(takeover) == "late 4; missed 0-1,5-7 <- 0-1; own 2-3");
  std::vector<Event> events{
      {Source::kNri, policy::ledger::ContainerSeen{.sandbox = "s-missed", .id = "missed"}},
      {Source::kNri, policy::ledger::ContainerSeen{.sandbox = "s-missed", .id = "missed"}}};
  std::get<policy::ledger::ContainerSeen>(events[1].body).spec.cpus = CpuSet{0, 1, 5, 6, 7};
  takeover.complete(events);
  CHECK(show(takeover) == "late 4; missed 0-1,5-7; own 2-3");
  CHECK(events.size() == 2);
  REQUIRE(takeover.resize("own", 50000, 0));  // half a CPU owns none
  CHECK(show(takeover) == "late 4; missed 0-3,5-7 <- 0-1,5-7; own 0-3,5-7 <- 2-3");
  takeover.end("late");
  takeover.forget({{Source::kNri, policy::ledger::ContainerGone{"s-missed", "missed"}},
                   {Source::kNri, policy::ledger::PodGone{"s-own"}}});
  CHECK(show(takeover).empty());
  CHECK(takeover.updates().empty());
}

TEST_CASE("ids that are none are passed over, as the mode itself does") {
  Takeover takeover({});
  auto strange = running("own", 1, {2});
  strange.candidate.id = "../own";
  takeover.synchronize({strange}, {});
  CHECK(show(takeover).empty());
}

TEST_CASE("settings that managed mode would refuse are named") {
  policy::managed::Rules rules;
  rules.min_shared = 100;
  Takeover takeover(rules);
  takeover.synchronize({}, {});
  CHECK(show(takeover).starts_with("[affinity.managed]: "));
}
