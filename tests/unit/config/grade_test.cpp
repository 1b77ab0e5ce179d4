// SPDX-License-Identifier: Apache-2.0
// Who has grade quiet: node, handlers, namespaces, and pods that request it.
#include <set>
#include <string>

#include "affinity/config/config.hpp"
#include "tests/catch.hpp"
#include "tests/unit/config/text.hpp"

using namespace ka;
using policy::CpuSet;
using policy::plan::Grade;
using tests::load;
using tests::wrong;

TEST_CASE("a grade is set for the node or a handler, the floor for the node") {
  const auto config =
      load("[affinity]\nquiet_floor = \"0-1\"\n[affinity.handler.kata]\ngrade = \"quiet\"\n");
  REQUIRE(config);
  CHECK(config->quiet.floor == CpuSet{0, 1});
  CHECK(config->defaults.grade == Grade::kBestEffort);
  CHECK(config->by_handler.at("kata").grade == Grade::kQuiet);
  CHECK(config->helper_socket == "/run/kata-affinity/helper.sock");
  CHECK(wrong("[affinity.handler.kata]\nquiet_floor = \"0\"\n").find("is node-wide") !=
        std::string::npos);
}

TEST_CASE("namespaces whose pods are quiet are named for the node, beside a class of managed") {
  const auto config = load(
      "[affinity]\nquiet_namespaces = [\"trading\", \"telecom\"]\n"
      "[affinity.managed]\nshare_namespaces = [\"trading\"]\n");
  REQUIRE(config);
  CHECK(config->quiet.namespaces == std::set<std::string, std::less<>>{"telecom", "trading"});
  CHECK(config->defaults.grade == Grade::kBestEffort);
  CHECK(wrong("[affinity]\nquiet_namespaces = [\"a b\"]\n").find("is not a namespace") !=
        std::string::npos);
  CHECK(wrong("[affinity.handler.kata]\nquiet_namespaces = [\"a\"]\n").find("is node-wide") !=
        std::string::npos);
}

TEST_CASE("grade realtime: by handler, namespace or annotation; its priority and power") {
  const auto config = load(
      "[affinity]\nrealtime_namespaces = [\"trading\"]\nrealtime_priority = 49\n"
      "realtime_power = \"keep\"\nquiet_partitions = false\n"
      "[affinity.handler.kata]\ngrade = \"realtime\"\nallow_grades = [\"realtime\"]\n");
  REQUIRE(config);
  CHECK(config->by_handler.at("kata").grade == Grade::kRealtime);
  CHECK(config->by_handler.at("kata").allow_grades == std::set{Grade::kRealtime});
  CHECK(config->quiet.realtime_namespaces == std::set<std::string, std::less<>>{"trading"});
  CHECK(config->quiet.has_namespaces());
  CHECK(config->quiet.realtime_priority == 49);
  CHECK_FALSE(config->quiet.realtime_full_power);
  CHECK_FALSE(config->quiet.partitions);
  const auto fallback = load("[affinity]\n");
  CHECK(fallback->quiet.realtime_priority == 1);
  CHECK(fallback->quiet.realtime_full_power);
  CHECK(fallback->quiet.partitions);
  for (const char* value : {"0", "50", "-1", "\"1\""}) {
    CHECK(wrong("[affinity]\nrealtime_priority = " + std::string(value) + '\n')
              .find("from 1 to 49") != std::string::npos);
  }
}

TEST_CASE("the class of grade realtime is one that the configuration defines") {
  const std::string named = "[affinity]\nrealtime_rdtclass = \"gold\"\n";
  const auto config = load(named + "[affinity.classes.gold]\nl3 = \"50%\"\n");
  REQUIRE(config);
  CHECK(config->quiet.realtime_rdtclass == "gold");
  CHECK(load("[affinity]\nrealtime_rdtclass = \"\"\n")->quiet.realtime_rdtclass.empty());
  for (const char* classes :
       {"", "[affinity.classes.gold]\nnice = -5\n", "[affinity.classes.silver]\nmba = \"50%\"\n"}) {
    CHECK(wrong(named + classes)
              .find("realtime_rdtclass: no [affinity.classes.gold] has l3, l2 or mba") !=
          std::string::npos);
  }
  CHECK(wrong("[affinity]\nrealtime_rdtclass = 1\n").find("must be the name of a class") !=
        std::string::npos);
}

TEST_CASE("grades that pods may request are listed for the node or a handler") {
  const auto config = load(
      "[affinity]\nallow_annotations = [\"grade\"]\nallow_grades = [\"best-effort\"]\n"
      "[affinity.handler.kata]\nallow_grades = [\"quiet\", \"best-effort\"]\n"
      "[affinity.handler.runc]\ngrade = \"quiet\"\n");
  REQUIRE(config);
  CHECK(config->quiet.by_annotation);
  CHECK(config->defaults.allow_grades == std::set{Grade::kBestEffort});
  CHECK(config->by_handler.at("kata").allow_grades == std::set{Grade::kBestEffort, Grade::kQuiet});
  CHECK(config->by_handler.at("runc").allow_grades == std::set{Grade::kBestEffort});
  CHECK(config->by_handler.at("runc").grade == Grade::kQuiet);
  CHECK_FALSE(load("[affinity]\n")->quiet.by_annotation);
  CHECK(wrong("[affinity]\nallow_grades = [\"loud\"]\n").find("\"loud\" is not one of") !=
        std::string::npos);
}

TEST_CASE("annotations of CRI-O are listed for the node or a handler") {
  using policy::TuningKind;
  const auto config = load(
      "[affinity]\nallow_annotations = [\"crio\"]\n"
      "allow_crio_annotations = [\"irq-load-balancing.crio.io\"]\n"
      "[affinity.handler.kata]\nallow_crio_annotations = [\"cpu-c-states.crio.io\", "
      "\"cpu-load-balancing.crio.io\", \"cpu-freq-governor.crio.io\", \"cpu-quota.crio.io\"]\n");
  REQUIRE(config);
  CHECK(config->quiet.tuning_by_annotation);
  CHECK(config->defaults.allow_tuning == std::set{TuningKind::kInterrupts});
  CHECK(config->by_handler.at("kata").allow_tuning ==
        std::set{TuningKind::kLoadBalancing, TuningKind::kIdleStates, TuningKind::kGovernor,
                 TuningKind::kQuota});
  CHECK_FALSE(load("[affinity]\n")->quiet.tuning_by_annotation);
  CHECK(wrong("[affinity]\nallow_crio_annotations = [\"cpu-shared.crio.io\"]\n")
            .find("is not one of") != std::string::npos);
}
