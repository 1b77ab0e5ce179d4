// SPDX-License-Identifier: Apache-2.0
#include <boost/asio/io_context.hpp>
#include <functional>

#include "shim-ext/kubelet/kubelet_watch.hpp"
#include "shim-ext/watch/kubelet_state.hpp"
#include "tests/catch.hpp"
#include "tests/run_loop.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text.hpp"
#include "tests/text_log.hpp"

using namespace ka;
using policy::CpuSet;
using policy::ledger::Claim;
using tests::contains;
using watch::parse_kubelet_state;
using Claims = std::vector<Claim>;

namespace {

watch::KubeletState parse(std::string_view text) {
  auto state = parse_kubelet_state(text);
  REQUIRE(state);
  return *state;
}

constexpr std::string_view kSecond =
    R"({"policyName":"static","defaultCpuSet":"7-9","entries":{"pod":{"container1":"4-6",
        "container2":"1-3"}},"checksum":)";

}  // namespace

// Contents and checksums of these are those of kubelet's own tests.

TEST_CASE("cpu_manager_state, version 1: entries by container id") {
  const auto state = parse(R"({"policyName":"static","defaultCPUSet":"7-9",
      "entries":{"containerID1":"4-6","containerID2":"1-3"},"checksum":2026311253})");
  CHECK(state.checksum_fits);
  CHECK(state.seen.shared_pool == CpuSet{7, 8, 9});
  CHECK(state.seen.claims ==
        Claims{{"", "containerID1", {4, 5, 6}}, {"", "containerID2", {1, 2, 3}}});
}

TEST_CASE("cpu_manager_state, version 2: entries by pod uid and container name") {
  const auto state = parse(std::string(kSecond) + "1942532442}");
  CHECK(state.checksum_fits);
  CHECK(state.policy == "static");
  CHECK(state.seen.claims ==
        Claims{{"pod", "container1", {4, 5, 6}}, {"pod", "container2", {1, 2, 3}}});
}

TEST_CASE("cpu_manager_state, version 3: CPUs of a whole pod") {
  const auto state = parse(R"({"policyName":"static","defaultCPUSet":"1-2",
      "entries":{"pod1":{"container1":"5-6","container2":"3-4"}},
      "podEntries":{"pod2":{"cpuSet":"7-9"}},"checksum":766259872})");
  CHECK(state.checksum_fits);
  CHECK(state.seen.claims == Claims{{"pod1", "container1", {5, 6}},
                                    {"pod1", "container2", {3, 4}},
                                    {"pod2", "", {7, 8, 9}}});
}

TEST_CASE("cpu_manager_state, version 4: only the text in data is read") {
  const auto state = parse(R"({"policyName":"other","defaultCPUSet":"1-9","checksum":1234,
      "data":"{\"policyName\":\"static\",\"defaultCPUSet\":\"7-9\",\"entries\":{\"pod\":{\"container1\":\"4-6\",\"container2\":\"1-3\"}}}",
      "dataChecksum":1420829534})");
  CHECK(state.checksum_fits);
  CHECK(state.seen.shared_pool == CpuSet{7, 8, 9});
  CHECK(state.seen.claims->size() == 2);
}

TEST_CASE("cpu_manager_state, version 4: a pod's CPUs, its exclusive containers and its rest") {
  const auto state = parse(R"({"policyName":"static","defaultCpuSet":"0-3",
      "entries":{"u1":{"app":"4-5","log":"6-7","proxy":"6-7"}},"podEntries":{"u1":{"cpuSet":"4-7"}},
      "checksum":0,"data":"{\"policyName\":\"static\",\"defaultCpuSet\":\"0-3\",\"entries\":)"
                           R"({\"u1\":{\"app\":\"4-5\",\"log\":\"6-7\",\"proxy\":\"6-7\"}},)"
                           R"(\"podEntries\":{\"u1\":{\"cpuSet\":\"4-7\"}}}","dataChecksum":1})");
  CHECK(state.seen.shared_pool == CpuSet{0, 1, 2, 3});
  CHECK(state.seen.claims == Claims{{"u1", "", {4, 5, 6, 7}},
                                    {"u1", "app", {4, 5}},
                                    {"u1", "log", {6, 7}},
                                    {"u1", "proxy", {6, 7}}});
}

// Written by the state package of kubelet 1.37.2 with InPlacePodVerticalScalingExclusiveCPUs and
// PodLevelResourceManagers: "app" of u1 was admitted with CPUs 4-5 and has grown by CPU 6.
TEST_CASE("cpu_manager_state, version 4: a container that was resized in place") {
  const auto state = parse(
      R"({"policyName":"static","defaultCpuSet":"0-3","entries":{"u1":{"app":"4-6"},)"
      R"("u2":{"app":"8-9","log":"10-11","proxy":"10-11"}},"checksum":3933788566,)"
      R"("data":"{\"policyName\":\"static\",\"defaultCpuSet\":\"0-3\",\"entries\":)"
      R"({\"u1\":{\"app\":\"4-6\"},\"u2\":{\"app\":\"8-9\",\"log\":\"10-11\",\"proxy\":\"10-11\"}},)"
      R"(\"podEntries\":{\"u2\":{\"cpuSet\":\"8-11\"}},)"
      R"(\"baselines\":{\"u1\":{\"app\":{\"baseline\":\"4-5\"}}}}","dataChecksum":1018426612})");
  CHECK(state.checksum_fits);
  CHECK(state.seen.claims == Claims{{"u1", "app", {4, 5, 6}},
                                    {"u2", "", {8, 9, 10, 11}},
                                    {"u2", "app", {8, 9}},
                                    {"u2", "log", {10, 11}},
                                    {"u2", "proxy", {10, 11}}});
}

TEST_CASE("an unknown version is named, and nothing of it is used") {
  for (const char* text :
       {R"({"policyName":"static","defaultCpuSet":"0-3","promisedCpuSets":{"u":{"c":"4"}}})",
        R"({"policyName":"static","podEntries":{"u":{"cpuSet":"4-7","promised":"4"}}})",
        R"({"policyName":"static","baselines":{"u":{"c":{"baseline":"4","promised":"5"}}}})",
        R"({"policyName":"static","podEntries":{"u":{"cpuSet":[4,5]}}})",
        R"({"policyName":"static","podEntries":{"u":{"cpuSet":null}}})",
        R"({"policyName":"static","defaultCpuSet":["0-3"]})",
        R"({"policyName":"static","baselines":{"u":{"c":"4"}}})",
        R"({"policyName":"static","entries":{"u":{"c":{"original":"4","resized":"4-5"}}}})",
        R"({"policyName":"static","data":"{\"policyName\":\"static\",\"v\":5}","dataChecksum":1})",
        R"({"policyName":"static","globalEntries":{"cpuset":"0-3"},"containerEntries":{}})"}) {
    const auto state = parse_kubelet_state(text);
    INFO(text);
    REQUIRE_FALSE(state);
    CHECK(state.error().message.find("unknown version") != std::string::npos);
  }
}

TEST_CASE("a wrong checksum is reported and the content used; 0 means no checksum") {
  CHECK_FALSE(parse(std::string(kSecond) + "1}").checksum_fits);
  CHECK(parse(std::string(kSecond) + "0}").checksum_fits);
  CHECK(parse(std::string(kSecond) + "1}").seen.claims->size() == 2);
  CHECK_FALSE(
      parse(R"({"data":"{\"policyName\":\"static\",\"defaultCpuSet\":\"0\"}","dataChecksum":7})")
          .checksum_fits);
}

TEST_CASE("without the static policy no CPU has an owner") {
  const auto state = parse(R"({"policyName":"none","defaultCpuSet":"","checksum":1353318690})");
  CHECK(state.checksum_fits);
  CHECK(state.policy == "none");
  CHECK(state.seen == policy::ledger::KubeletSeen{});
}

/// kubelet 1.35 that starts without a state file writes this before its policy has started.
TEST_CASE("a state that kubelet has not initialized says nothing of owners") {
  constexpr const char* kFirst =
      R"({"policyName":"static","defaultCpuSet":"","entries":{},"checksum":0})";
  const auto state = parse_kubelet_state(kFirst);
  REQUIRE_FALSE(state);
  CHECK(contains(state.error().message, "not initialized"));
  CHECK(parse(R"({"policyName":"static","defaultCpuSet":"","entries":{"u":{"c":"1-3"}}})")
            .seen.claims->size() == 1);
}

TEST_CASE("invalid state files are rejected with a reason") {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"policyName":7})", R"({"policyName":"static","entries":[]})",
        R"({"policyName":"static","entries":{"p":7}})",
        R"({"policyName":"static","entries":{"p":{"c":7}}})",
        R"({"policyName":"static","entries":{"p":{"c":"5-4"}}})",
        R"({"policyName":"static","defaultCpuSet":"x"})",
        R"({"policyName":"static","podEntries":{"p":"4"}})", R"({"data":"{"})"}) {
    INFO(text);
    CHECK_FALSE(parse_kubelet_state(text));
  }
}

TEST_CASE("the file is followed when written, replaced, truncated, removed or in a new directory") {
  const tests::TempDir dir;
  boost::asio::io_context io;
  std::string lines;
  const log::Log log = tests::text_log(log::Level::kWarning, lines);
  std::vector<policy::ledger::KubeletSeen> reported;
  std::string stands;
  std::function<void()> poll;
  kubelet::KubeletWatch watch(
      io, dir.path() / "kubelet/cpu_manager_state", kubelet::LastState(dir.path(), "boot"),
      {.changed = [&] { poll(); },
       .status =
           [&](const source::Status& status) {
             stands = status.absent ? "absent: " : status.up ? "up: " : "down: ";
             stands += status.text;
           }},
      log);
  poll = [&] {
    if (auto seen = watch.poll()) reported.push_back(std::move(*seen));
  };
  const auto run_ready = [&] { tests::run_ready(io); };
  poll();
  CHECK(reported.empty());
  CHECK(stands.starts_with("absent: "));
  CHECK(stands.ends_with(" does not exist"));
  dir.write("kubelet/cpu_manager_state", std::string(kSecond) + "0}");
  poll();
  REQUIRE(reported.size() == 1);
  CHECK(stands == R"(up: CPU manager policy "static")");
  poll();
  run_ready();
  CHECK(reported.size() == 1);

  dir.write("kubelet/.tmp", R"({"policyName":"static","defaultCpuSet":"0"})");
  std::filesystem::rename(dir.path() / "kubelet/.tmp", dir.path() / "kubelet/cpu_manager_state");
  run_ready();
  REQUIRE(reported.size() == 2);
  CHECK(reported[1].shared_pool == CpuSet{0});

  dir.write("kubelet/cpu_manager_state", R"({"policyName":"sta)");
  run_ready();
  REQUIRE(reported.size() == 3);
  CHECK(reported[2].shared_pool == CpuSet{0});
  CHECK(reported[2].outdated);
  CHECK(lines.find("keeping the last good state") != std::string::npos);
  CHECK(stands.starts_with("down: "));
  poll();
  CHECK(reported.size() == 3);

  dir.write("kubelet/cpu_manager_state", std::string(kSecond) + "0}");
  run_ready();
  REQUIRE(reported.size() == 4);
  std::filesystem::remove_all(dir.path() / "kubelet");
  run_ready();
  REQUIRE(reported.size() == 5);
  CHECK(reported[4].claims == reported[3].claims);
  CHECK(reported[4].outdated);
  CHECK(stands.starts_with("down: "));
  CHECK(stands.ends_with(" was removed; keeping the last good state"));

  dir.write("kubelet/cpu_manager_state", std::string(kSecond) + "1}");
  poll();
  REQUIRE(reported.size() == 6);
  CHECK_FALSE(reported[5].outdated);
  CHECK(lines.find("checksum") != std::string::npos);
  CHECK(stands.find("checksum mismatch") != std::string::npos);
  dir.write("kubelet/cpu_manager_state", R"({"policyName":"none"})");
  run_ready();
  CHECK(reported.size() == 7);
  CHECK(stands == R"(up: CPU manager policy "none": no container owns CPUs)");
  std::filesystem::remove_all(dir.path() / "kubelet");
  run_ready();
  REQUIRE(reported.size() == 8);
  CHECK(reported[7] == policy::ledger::KubeletSeen{});
  CHECK(stands.starts_with("absent: "));
}
