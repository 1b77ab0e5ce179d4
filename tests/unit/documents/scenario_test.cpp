// SPDX-License-Identifier: Apache-2.0
#include "affinity/documents/scenario.hpp"

#include <boost/json/value.hpp>

#include "base/json/json.hpp"
#include "tests/catch.hpp"

using namespace ka;
using policy::CpuSet;

namespace {

/// 16 CPUs, two sockets, CPU 15 offline.
policy::Topology machine() {
  std::vector<policy::Cpu> cpus;
  for (int i = 0; i < 16; ++i) {
    cpus.push_back({.cpu = i, .core = i, .socket = i / 8, .numa = i / 8, .online = i != 15});
  }
  return *policy::Topology::make(cpus);
}

base::Result<documents::Scenario> read(std::string_view text) {
  const auto document = base::parse_json(text, "in");
  REQUIRE(document);
  return documents::scenario_from_json(*document, machine());
}

/// The input_error about one sandbox with these further fields.
std::string wrong_sandbox(const std::string& fields) {
  const auto scenario = read(R"({"sandboxes":[{"id":"s1",)" + fields + "}]}");
  return scenario ? "" : scenario.error().message;
}

constexpr std::string_view kDocumented = R"(
{"shared_pool":"0-1,8-9", "exclusive_elsewhere":"6-7",
 "settings":{"vcpu_pinning":"balanced","housekeeping":"shared-pool","vhost":"4-5","shim":"isolate",
   "cgroup":"manage"},
 "sandboxes":[{"id":"s2"}, {"id":"s1", "pod_uid":"u", "cgroup":"0-3,8-9",
   "vcpus":[{"index":3,"apic_id":6,"socket":1,"core":2,"thread":1,"numa":1}, {"index":0}],
   "devices":[{"id":"0000:02:00.0","numa":1},{"id":"0000:01:00.0"}],
   "threads":{"emulator":1,"iothreads":["io2","io1"],"vhost":2,"virtiofsd":1,"shim":1,"helpers":0},
   "containers":[{"id":"c2"},
     {"id":"c1","name":"app","cpus":"2-3","mems":"0","exclusive":false,
      "quota":200000,"period":100000}]}]})";

}  // namespace

TEST_CASE("the documented scenario is read field by field") {
  const auto scenario = read(kDocumented);
  REQUIRE(scenario);
  const auto& [snapshot, settings] = *scenario;
  CHECK(snapshot.shared_pool == CpuSet{0, 1, 8, 9});
  CHECK(snapshot.exclusive_elsewhere == CpuSet{6, 7});
  CHECK(snapshot.topology == machine());
  CHECK(settings.vcpu_pinning == policy::plan::VcpuPinning::kBalanced);
  CHECK(settings.housekeeping.kind == policy::plan::Housekeeping::Kind::kSharedPool);
  CHECK(settings.housekeeping_by_role.size() == 2);
  CHECK(settings.housekeeping_by_role.at(policy::Role::kVhost).cpus == CpuSet{4, 5});
  CHECK(settings.housekeeping_by_role.at(policy::Role::kShim).kind ==
        policy::plan::Housekeeping::Kind::kIsolate);

  CHECK(settings.manage_cgroup);

  REQUIRE(snapshot.sandboxes.size() == 2);
  const auto& sandbox = snapshot.sandboxes[0];
  CHECK(sandbox.cgroup_writable);
  CHECK(sandbox.id == "s1");
  CHECK(sandbox.pod_uid == "u");
  CHECK(sandbox.cgroup_cpus == CpuSet{0, 1, 2, 3, 8, 9});
  CHECK_FALSE(snapshot.sandboxes[1].cgroup_cpus);
  CHECK(sandbox.devices ==
        std::vector<policy::DeviceFacts>{{"0000:01:00.0", -1}, {"0000:02:00.0", 1}});
  CHECK(sandbox.iothreads == std::vector<std::string>{"io1", "io2"});
  REQUIRE(sandbox.vcpus.size() == 2);
  CHECK(sandbox.vcpus[0] == policy::VcpuFacts{.index = 0, .core = 0});
  CHECK(sandbox.vcpus[1] == policy::VcpuFacts{3, 6, 1, 2, 1, 1});
  REQUIRE(sandbox.containers.size() == 2);
  const auto& container = sandbox.containers[0];
  CHECK(container.name == "app");
  CHECK(container.cpus == CpuSet{2, 3});
  CHECK(container.mems == policy::NodeSet{0});
  CHECK(container.quota == 200000);
  CHECK(container.period == 100000);
  CHECK_FALSE(container.exclusive);
  CHECK(sandbox.containers[1].cpus.empty());
}

TEST_CASE("a number of vCPUs means one socket with one thread per core") {
  const auto scenario = read(R"({"sandboxes":[{"id":"s","vcpus":3}]})");
  REQUIRE(scenario);
  const auto& vcpus = scenario->snapshot.sandboxes[0].vcpus;
  REQUIRE(vcpus.size() == 3);
  CHECK(vcpus[2] == policy::VcpuFacts{.index = 2, .apic_id = 2, .core = 2});
}

TEST_CASE("a container without exclusive is judged by its quota") {
  const auto scenario = read(R"({"sandboxes":[{"id":"s","containers":[
      {"id":"a","cpus":"2-3","quota":200000,"period":100000},
      {"id":"b","cpus":"2-3","quota":150000,"period":100000}]}]})");
  REQUIRE(scenario);
  CHECK(scenario->snapshot.sandboxes[0].containers[0].exclusive);
  CHECK_FALSE(scenario->snapshot.sandboxes[0].containers[1].exclusive);
}

TEST_CASE("an error in a scenario is reported with its path") {
  CHECK(wrong_sandbox(R"("containers":[{"id":"a"},{"id":"b","cpuz":"1"}])") ==
        "sandboxes[0].containers[1].cpuz: unknown key");
  CHECK(wrong_sandbox(R"("containers":[{"id":"a","cpus":"5-2"}])") ==
        "sandboxes[0].containers[0].cpus: \"5-2\": range ends before it starts (position 0)");
  CHECK(wrong_sandbox(R"("containers":[{"id":"a","cpus":"2,16-17"}])") ==
        "sandboxes[0].containers[0].cpus: the machine has no CPUs 16-17");
  CHECK(wrong_sandbox(R"("containers":[{"id":"a","cpus":"14-15"}])") ==
        "sandboxes[0].containers[0].cpus: CPU 15: offline");
  CHECK(wrong_sandbox(R"("containers":[{"id":"a","mems":"2"}])") ==
        "sandboxes[0].containers[0].mems: the machine has no node 2");
  CHECK(wrong_sandbox(R"("containers":[{"id":"a"},{"id":"a"}])") ==
        "sandboxes[0].containers: an id or index is listed twice");
  CHECK(wrong_sandbox(R"("containers":{})") == "sandboxes[0].containers: must be an array");
  CHECK(wrong_sandbox(R"("vcpus":"5")") == "sandboxes[0].vcpus: must be a number or an array");
  CHECK(wrong_sandbox(R"("vcpus":-1)") == "sandboxes[0].vcpus: must be from 0 to 8191");
  CHECK(wrong_sandbox(R"("vcpus":[{"index":1},{"index":1}])") ==
        "sandboxes[0].vcpus: an id or index is listed twice");
  CHECK(wrong_sandbox(R"("vcpus":[{"apic_id":1}])") == "sandboxes[0].vcpus[0].index: missing");
  CHECK(wrong_sandbox(R"("threads":{"iothread":1})") ==
        "sandboxes[0].threads.iothread: unknown key");
  CHECK(read(R"({"sandboxes":[{}]})").error().message == "sandboxes[0].id: missing");
  CHECK(read(R"({"sandboxes":[{"id":"a"},{"id":"a"}]})").error().message ==
        "sandboxes: an id or index is listed twice");
  CHECK(read(R"({"settings":{"mode":"follow"},"sandboxes":[]})").error().message ==
        "settings.mode: unknown key");
  CHECK(read(R"({"settings":{"housekeeping":"pool"},"sandboxes":[]})").error().message ==
        "settings.housekeeping: \"pool\" is not one of \"sandbox\", \"shared-pool\", \"isolate\" "
        "or a cpuset");
  CHECK(read(R"({"settings":{"vcpu_pinning":"x"},"sandboxes":[]})").error().message ==
        "settings.vcpu_pinning: \"x\" is not one of \"dedicated\", \"balanced\", \"mask\", "
        "\"none\"");
}
