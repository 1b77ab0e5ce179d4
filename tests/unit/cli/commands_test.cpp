// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/plan/plan.hpp"

#include <boost/json/value.hpp>
#include <sstream>

#include "affinity/cli/topology/topology.hpp"
#include "affinity/documents/topology.hpp"
#include "affinity/host/topology.hpp"
#include "base/json/json.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using cli::Exit;

namespace {

constexpr const char* kMachine = "synthetic:pack:2 core:8 pu:1";

constexpr const char* kScenario = R"(
{"shared_pool":"0-1,8-9", "exclusive_elsewhere":"6-7",
 "settings":{"vcpu_pinning":"dedicated","housekeeping":"shared-pool"},
 "sandboxes":[{"id":"s1", "pod_uid":"uid", "cgroup":"0-3,8-9", "vcpus":3,
   "threads":{"emulator":1,"iothreads":["io1"],"vhost":2,"virtiofsd":1,"shim":1,"helpers":0},
   "containers":[{"id":"c1","name":"app","cpus":"2-3","mems":"0","exclusive":true,
                  "quota":200000,"period":100000}]}]})";

struct Ended {
  Exit exit;
  std::string out, err;
};

template <typename Options>
Ended run(const Options& options, bool json) {
  std::ostringstream out, err;
  cli::Output output(out, err, json);
  const Exit exit = cli::run(options, output);
  return {exit, out.str(), err.str()};
}

/// Plans a scenario for the machine above.
Ended plan(const std::string& scenario, const std::string& previous = "", bool json = true) {
  const tests::TempDir dir;
  dir.write("s.json", scenario);
  cli::PlanOptions options;
  options.topology = kMachine;
  options.scenario = dir.path() / "s.json";
  if (!previous.empty()) {
    dir.write("p.json", previous);
    options.previous = dir.path() / "p.json";
  }
  return run(options, json);
}

}  // namespace

TEST_CASE("topology prints a machine that reads back the same") {
  const auto ended = run(cli::TopologyOptions{kMachine}, true);
  CHECK(ended.exit == Exit::kDone);
  const auto document = base::parse_json(ended.out, "out");
  REQUIRE(document);
  CHECK(*documents::topology_from_json(*document) == *host::load_topology(kMachine));
}

TEST_CASE("a machine that cannot be read exits with status 2") {
  const auto ended = run(cli::TopologyOptions{"/nonexistent/machine"}, true);
  CHECK(ended.exit == Exit::kWrong);
  CHECK(ended.out.empty());
  CHECK(ended.err.starts_with("kata-affinityctl: /nonexistent/machine: "));
  const auto raw = run(cli::TopologyOptions{"/nonexistent/\x1b[31m"}, true);
  CHECK(raw.err.starts_with("kata-affinityctl: /nonexistent/\\x1b[31m: "));
}

TEST_CASE("plan prints the documented answer to the documented scenario") {
  const auto ended = plan(kScenario);
  CHECK(ended.exit == Exit::kDone);
  CHECK(ended.err.empty());
  const auto document = base::parse_json(ended.out, "out");
  REQUIRE(document);
  const auto at = [&document](const std::string& pointer) {
    return document->at_pointer("/sandboxes/0" + pointer);
  };
  CHECK(at("/mask") == "2-3");
  CHECK(at("/mems") == "0");
  CHECK(at("/vcpus/0/role") == "floating");
  CHECK(at("/vcpus/0/cpus") == "0-1,8-9");
  CHECK(at("/vcpus/1/role") == "dedicated");
  CHECK(at("/vcpus/1/container") == "c1");
  CHECK(at("/vcpus/1/cpus") == "2");
  CHECK(at("/vcpus/2/cpus") == "3");
  for (const char* thread : {"/emulator", "/iothreads/io1", "/vhost", "/virtiofsd", "/shim"}) {
    CHECK(at(thread) == "0-1,8-9");
  }
  CHECK(at("/containers/0/vcpus") == "1-2");
  CHECK(at("/containers/0/dedicated") == true);
}

TEST_CASE("the previous plan's vCPUs are kept, also under another container id") {
  const std::string before = plan(kScenario).out;
  const auto swapped = [](std::string text) {
    const std::size_t at = text.find(R"("cpus":"2","role")");
    REQUIRE(at != std::string::npos);
    text[at + 8] = '3';
    text[text.find(R"("cpus":"3","role")", at + 1) + 8] = '2';
    return text;
  };
  std::string recreated = kScenario;
  recreated.replace(recreated.find("\"c1\""), 4, "\"c9\"");
  const auto ended = plan(recreated, swapped(before));
  CHECK(ended.out.find(R"({"index":1,"cpus":"3","role":"dedicated","container":"c9"})") !=
        std::string::npos);
}

TEST_CASE("plan's text has every thread and every warning") {
  const auto ended = plan(
      R"({"settings":{"housekeeping":"0","emulator":"1","iothread":"2","vhost":"3","virtiofsd":"8",
      "shim":"9"},"sandboxes":[{"id":"s","vcpus":3,"threads":{"iothreads":["io1"]},
      "containers":[{"id":"c","cpus":"4-5","exclusive":true}]},
      {"id":"t","vcpus":1,"containers":[{"id":"d","cpus":"6-7","exclusive":true}]}]})",
      "", false);
  CHECK(ended.exit == Exit::kDone);
  CHECK(ended.out == R"(sandbox s: mask 4-5, mems 0
  THREAD               ROLE       CPUS                     CONTAINER
  vCPU 0               floating   0
  vCPU 1               dedicated  4                        c
  vCPU 2               dedicated  5                        c
  emulator                        1
  iothread io1                    2
  vhost                           3
  virtiofsd                       8
  shim                            9
  helpers                         0
  - housekeeping runs on the configured CPUs: CPU 0
  - 1 vCPU floats on CPU 0
  - housekeeping of emulator runs on the configured CPUs: CPU 1
  - housekeeping of iothread runs on the configured CPUs: CPU 2
  - housekeeping of vhost runs on the configured CPUs: CPU 3
  - housekeeping of virtiofsd runs on the configured CPUs: CPU 8
  - housekeeping of shim runs on the configured CPUs: CPU 9
  - container c has a dedicated vCPU on each of CPUs 4-5

sandbox t: mask 6-7, mems 0
  THREAD               ROLE       CPUS                     CONTAINER
  vCPU 0               floating   6-7                      d
  emulator                        1
  vhost                           3
  virtiofsd                       8
  shim                            9
  helpers                         0
  - housekeeping runs on the configured CPUs: CPU 0
  - housekeeping of emulator runs on the configured CPUs: CPU 1
  - housekeeping of iothread runs on the configured CPUs: CPU 2
  - housekeeping of vhost runs on the configured CPUs: CPU 3
  - housekeeping of virtiofsd runs on the configured CPUs: CPU 8
  - housekeeping of shim runs on the configured CPUs: CPU 9
  ! no floating vCPU is left: the guest kernel and shared containers use vCPU 0
  ! container d has 1 vCPU for CPUs 6-7: it floats on these as a group
)");
}

TEST_CASE("invalid input of plan exits with status 2, and names file and position") {
  const auto error = [](const Ended& ended) {
    CHECK(ended.exit == Exit::kWrong);
    CHECK(ended.out.empty());
    return ended.err;
  };
  CHECK(error(plan("{\"sandboxes\":")).find("s.json:1:14: not JSON") != std::string::npos);
  CHECK(error(plan(R"({"sandboxes":[{"id":"s","cpus":"1"}]})"))
            .ends_with("s.json: sandboxes[0].cpus: unknown key\n"));
  CHECK(error(plan(kScenario, R"({"sandboxes":[{"id":7}]})"))
            .ends_with("p.json: sandboxes[0].id: must be a string\n"));
  cli::PlanOptions absent;
  absent.scenario = "/nonexistent/s.json";
  CHECK(error(run(absent, true)).starts_with("kata-affinityctl: /nonexistent/s.json: "));
}
