// SPDX-License-Identifier: Apache-2.0
#include "affinity/documents/plan.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <set>

#include "affinity/messages/isolation.hpp"
#include "affinity/messages/notes.hpp"
#include "base/json/json.hpp"
#include "tests/catch.hpp"

using namespace ka;
using policy::plan::Code;
using policy::plan::Note;

namespace {

policy::plan::SandboxPlan example() {
  policy::plan::SandboxPlan plan;
  plan.id = "s1";
  plan.pod_uid = "uid";
  plan.mask = {2, 3};
  plan.mems = {0};
  plan.housekeeping = {0, 1};
  plan.vcpus = {{.index = 0, .cpus = {0, 1}, .placed = false},
                {1, {2}, policy::plan::VcpuRole::kDedicated, "c1", true}};
  plan.roles[policy::Role::kEmulator] = plan.roles[policy::Role::kIothread] =
      plan.roles[policy::Role::kVhost] = {0, 1};
  plan.roles[policy::Role::kVirtiofsd] = {0};
  plan.roles[policy::Role::kShim] = {1};
  plan.iothreads = {{"io1", {0, 1}}};
  plan.interrupts = {{"0000:01:00.0", {2}}};
  plan.containers = {{"c1", "app", {1}, true}};
  return plan;
}

std::string text(const Note& note) { return messages::sentence(note); }

}  // namespace

TEST_CASE("a plan is printed in the documented form") {
  auto plan = example();
  plan.pod_uid.clear();
  plan.warnings = {{Code::kNotIsolated, "", {7}, 0}};
  const auto object = documents::to_json(plan);
  CHECK(boost::json::serialize(object.at("vcpus")) ==
        R"([{"index":0,"cpus":"0-1","role":"floating","placed":false},)"
        R"({"index":1,"cpus":"2","role":"dedicated","container":"c1"}])");
  CHECK(boost::json::serialize(object.at("iothreads")) == R"({"io1":"0-1"})");
  CHECK(boost::json::serialize(object.at("interrupts")) == R"({"0000:01:00.0":"2"})");
  CHECK(object.at("emulator") == "0-1");
  CHECK(object.at("helpers") == "");
  CHECK(boost::json::serialize(object.at("containers")) ==
        R"([{"id":"c1","vcpus":"1","dedicated":true,"name":"app"}])");
  CHECK(boost::json::serialize(object.at("warnings")) ==
        R"(["not isolated: CPU 7 also carries housekeeping"])");
  CHECK_FALSE(object.contains("pod_uid"));
}

TEST_CASE("a printed plan is read back, without its sentences") {
  const policy::plan::Plan plan{{example()}};
  auto spoken = plan;
  spoken.sandboxes[0].reasons = {{Code::kFloating, "", {0, 1}, 1}};
  const std::string printed = boost::json::serialize(documents::to_json(spoken));
  const auto again = documents::plan_from_json(*base::parse_json(printed, "p"));
  REQUIRE(again);
  CHECK(*again == plan);
}

TEST_CASE("an invalid previous plan is rejected with a path") {
  const auto error = [](std::string_view json) {
    return documents::plan_from_json(*base::parse_json(json, "p")).error().message;
  };
  CHECK(error("{}") == "sandboxes: missing");
  CHECK(error(R"({"sandboxes":[{"id":"s","vcpus":[{"index":0,"role":"x"}]}]})") ==
        "sandboxes[0].vcpus[0].role: \"x\" is not one of \"dedicated\", \"floating\"");
  CHECK(error(R"({"sandboxes":[{"id":"s","iothreads":{"io1":"9-"}}]})") ==
        "sandboxes[0].iothreads.io1: \"9-\": expected a number (position 2)");
}

TEST_CASE("every code has a sentence of its own") {
  std::set<std::string> seen;
  for (int code = 0; code <= static_cast<int>(Code::kOverrideRefused); ++code) {
    const auto said = text({static_cast<Code>(code), "x", {1, 2}, 3});
    CHECK_FALSE(said.empty());
    CHECK(seen.insert(said).second);
  }
}

TEST_CASE("a remedy that a profile covers names the command") {
  using policy::plan::Remedy;
  const auto names_it = [](Remedy remedy) {
    const std::string text =
        messages::remedy_text({.subject = {}, .cpus = {}, .remedy = remedy}, "s1");
    return text.find("(kata-affinityctl setup --profile isolated --yes)") != std::string::npos;
  };
  for (const Remedy remedy : {Remedy::kFollow, Remedy::kSharedPool, Remedy::kManageCgroup}) {
    CHECK(names_it(remedy));
  }
  CHECK_FALSE(names_it(Remedy::kReconcile));
  CHECK_FALSE(names_it(Remedy::kMoreVcpus));
}

TEST_CASE("sentences are plain English") {
  CHECK(text({Code::kFloating, "", {0, 1, 8, 9}, 1}) == "1 vCPU floats on CPUs 0-1,8-9");
  CHECK(text({Code::kDedicated, "app", {4}, 1}) == "container app has a dedicated vCPU on CPU 4");
  CHECK(text({Code::kHousekeepingCpus, "vhost", {4}, 0}) ==
        "housekeeping of vhost runs on the configured CPUs: CPU 4");
  CHECK(text({Code::kFloating, "", {4}, 2}) == "2 vCPUs float on CPU 4");
  CHECK(text({Code::kNotIsolated, "", {6, 7}, 0}) ==
        "not isolated: CPUs 6-7 also carry housekeeping");
  CHECK(text({Code::kTooFewVcpus, "app", {2, 3, 4}, 2}) ==
        "container app has 2 vCPUs for CPUs 2-4: they float on these as a group");
  CHECK(text({Code::kHousekeepingRefused, "vhost", {2}, 0}) ==
        "housekeeping of vhost cannot use CPU 2: placed as with \"sandbox\"");
  CHECK(text({Code::kHousekeepingConfined, "emulator, vhost", {0, 1}, 0}) ==
        "housekeeping cannot use CPUs 0-1: the cgroup of emulator, vhost does not allow them, "
        "which are placed as with \"sandbox\" (cgroup = \"manage\" allows it)");
  CHECK(text({Code::kNoUsableCpu, "s1", {2}, 0}) ==
        "s1: none of its CPUs is usable, it runs on CPUs that no other pod owns");
  CHECK(text({Code::kNoUsableCpu, "s1", {2}, 1}) ==
        "s1: none of its CPUs is usable, nor is any other: its vCPUs stay where they are");
  CHECK(text({Code::kForeignCpusRemoved, "", {5}, 0}) ==
        "CPU 5 is exclusive to other pods and left out");
}
