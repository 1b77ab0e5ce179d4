// SPDX-License-Identifier: Apache-2.0
// CRI-O's annotations: which there are, for which containers, and what their values mean.
#include "policy/plan/tuning.hpp"

#include "tests/catch.hpp"
#include "tests/unit/policy/plan_scenario.hpp"

using namespace ka::policy;
using namespace ka::policy::plan;

namespace {

const std::set<TuningKind> kAll{TuningKind::kLoadBalancing, TuningKind::kInterrupts,
                                TuningKind::kIdleStates, TuningKind::kGovernor, TuningKind::kQuota};

CpuTuning tuned(const Annotations& annotations, const char* container = "app") {
  return tune_container(annotations, container, kAll).tuning;
}

std::string latency(const char* value) {
  return tuned({{"cpu-c-states.crio.io", value}}).resume_latency;
}

std::string governor(const char* value) {
  return tuned({{"cpu-freq-governor.crio.io", value}}).governor;
}

}  // namespace

TEST_CASE("annotations of CRI-O are known, for a pod and for a container, and no others") {
  for (const char* known :
       {"cpu-load-balancing.crio.io", "irq-load-balancing.crio.io/app", "cpu-c-states.crio.io",
        "cpu-freq-governor.crio.io/a.b", "cpu-quota.crio.io/app"}) {
    CHECK(is_tuning_request(known));
  }
  for (const char* other : {"cpu-load-balancing.crio.io/", "cpu-load-balancing.crio.iox",
                            "cpu-shared.crio.io/app", "crio.io", ""}) {
    CHECK_FALSE(is_tuning_request(other));
  }
}

TEST_CASE("the annotation of a container comes before that of its pod") {
  const Annotations annotations{{"irq-load-balancing.crio.io", "disable"},
                                {"irq-load-balancing.crio.io/db", "enable"},
                                {"cpu-load-balancing.crio.io/app", "disable"}};
  CHECK(tuned(annotations) == CpuTuning{true, HostInterrupts::kNowhere, {}, {}});
  CHECK(tuned(annotations, "db") == CpuTuning{});
  CHECK(tuned(annotations, "other") == CpuTuning{false, HostInterrupts::kNowhere, {}, {}});
}

TEST_CASE("values are those of CRI-O") {
  CHECK(latency("disable") == "n/a");
  CHECK(latency("enable") == "0");
  CHECK(latency("max_latency:10") == "10");
  for (const char* wrong : {"max_latency:0", "max_latency:-1", "max_latency:", "max_latency:1us",
                            "max_latency:99999999999", "10", "", "n/a"}) {
    CHECK(latency(wrong).empty());
  }
  CHECK(governor("performance") == "performance");
  for (const char* wrong : {"", "Performance", "a b", "../x", "a-very-long-governor"}) {
    CHECK(governor(wrong).empty());
  }
  CHECK(tuned({{"cpu-load-balancing.crio.io", "true"}}).is_isolated);
  CHECK(tuned({{"irq-load-balancing.crio.io", "housekeeping"}}).interrupts ==
        HostInterrupts::kFirstCore);
  CHECK_FALSE(tuned({{"cpu-load-balancing.crio.io", "housekeeping"}}).is_isolated);
  CHECK(tuned({{"cpu-quota.crio.io", "housekeeping"}}).has_quota);
  CHECK_FALSE(tuned({{"cpu-quota.crio.io", "disable"}}).has_quota);
  CHECK(tuned({{"cpu-quota.crio.io", "enable"}}).has_quota);
  CHECK(tuned({{"cpu-quota.crio.io", "max"}}).has_quota);
}

TEST_CASE("what is not allowed, or has no such value, is named and has no effect") {
  const Annotations annotations{{"cpu-load-balancing.crio.io", "disable"},
                                {"irq-load-balancing.crio.io", "maybe"},
                                {"cpu-c-states.crio.io", "disable"}};
  const auto found =
      tune_container(annotations, "app", {TuningKind::kInterrupts, TuningKind::kIdleStates});
  CHECK(found.tuning == CpuTuning{false, HostInterrupts::kEverywhere, "n/a", {}});
  using Requests = std::vector<TuningRequest>;
  CHECK(found.requests ==
        Requests{{TuningKind::kLoadBalancing, "disable", TuningRefusal::kNotAllowed},
                 {TuningKind::kInterrupts, "maybe", TuningRefusal::kUnknown},
                 {TuningKind::kIdleStates, "disable", {}}});
}

TEST_CASE("housekeeping leaves the host's interrupts the container's part of its first core") {
  using enum HostInterrupts;
  const Topology cores = scenario::machine(1, 4, 2);  // 0,4 1,5 2,6 3,7
  const auto without = [&cores](HostInterrupts interrupts, const CpuSet& own, const CpuSet& tuned) {
    return format_list(cpus_without_interrupts(cores, interrupts, own, tuned));
  };
  CHECK(without(kFirstCore, {1, 2, 5, 6}, {1, 2, 5, 6}) == "2,6");
  CHECK(without(kFirstCore, {1, 2, 3}, {1, 2, 3}) == "2-3");
  CHECK(without(kFirstCore, {2, 5}, {2, 5}) == "5");
  CHECK(without(kFirstCore, {1, 5}, {1, 5}).empty());
  CHECK(without(kFirstCore, {1, 2, 5, 6}, {2, 6}) == "2,6");  // its first core is not tuned
  CHECK(without(kFirstCore, {1, 2}, {}).empty());
  CHECK(without(kNowhere, {1, 2, 5, 6}, {1, 2, 5, 6}) == "1-2,5-6");
  CHECK(without(kEverywhere, {1, 2}, {1, 2}).empty());
}
