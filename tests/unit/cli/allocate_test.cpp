// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include "affinity/cli/allocate/allocate.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using cli::Exit;

namespace {

struct Ended {
  Exit exit;
  std::string out, err;

  bool operator==(const Ended&) const = default;
};

template <typename Options>
Ended run(const Options& options, bool json = true) {
  std::ostringstream out, err;
  cli::Output output(out, err, json);
  const Exit exit = cli::run(options, output);
  return {exit, out.str(), err.str()};
}

/// Two sockets with a node of 4 cores each, 2 threads a core, siblings side by side.
cli::AllocateOptions options(int cpus) {
  cli::AllocateOptions options;
  options.topology = "synthetic:pack:2 numa:1 core:4 pu:2";
  options.cpus = cpus;
  return options;
}

Ended merge(const std::string& problem, bool json = true) {
  const tests::TempDir dir;
  dir.write("hints.json", problem);
  return run(cli::MergeHintsOptions{dir.path() / "hints.json"}, json);
}

std::string input_error(const Ended& ended) {
  CHECK(ended.exit == Exit::kWrong);
  CHECK(ended.out == "");
  return ended.err;
}

}  // namespace

TEST_CASE("allocate prints the CPUs, or why there are none") {
  CHECK(run(options(3)) == Ended{Exit::kDone, "{\"cpus\":\"0-2\"}\n", ""});
  CHECK(run(options(3), false) == Ended{Exit::kDone, "0-2\n", ""});
  const Ended refused = run(options(17));
  CHECK(refused.exit == Exit::kNo);
  CHECK(refused.out ==
        "{\"error\":\"not enough cpus available to satisfy request: requested=17, "
        "available=16\"}\n");
}

TEST_CASE("allocate uses every option that affects the answer") {
  auto given = options(4);
  given.available = "0-3,8-15";
  given.reserved = "8";
  CHECK(run(given).out == "{\"cpus\":\"0-3\",\"shared_pool\":\"8-15\"}\n");
  given.options = {"strict-cpu-reservation"};
  CHECK(run(given).out == "{\"cpus\":\"0-3\",\"shared_pool\":\"9-15\"}\n");
  given.numa_affinity = "1";
  CHECK(run(given, false).out == "10-13\n");
  given = options(8);
  given.strategy = "distributed";
  given.available = "0-5,8-13";
  CHECK(run(given, false).out == "0-3,8-11\n");
  given = options(4);
  given.held = "9";
  given.available = "0-8,10-15";
  CHECK(run(given, false).out == "8-11\n");
  given.cpus = 0;
  CHECK(run(given, false).out == "\n");
}

TEST_CASE("allocate explains its choice") {
  auto given = options(2);
  given.reserved = "0";
  given.explain = true;
  const std::string text = run(given, false).out;
  CHECK(text.find("Filter     reserved           removed CPU 0\n") != std::string::npos);
  CHECK(text.find("cores: took CPUs 2-3 with score 0\n") != std::string::npos);
  CHECK(run(given).out.find(R"({"phase":"Filter","step":"reserved","what":"removed","cpus":"0")") !=
        std::string::npos);
}

TEST_CASE("allocate applies a pod's annotations, and the command line overrides them") {
  const tests::TempDir dir;
  dir.write("hybrid.json", R"({"cpus":[{"cpu":0,"core":0,"socket":0,"numa":0,"kind":1},
    {"cpu":1,"core":0,"socket":0,"numa":0,"kind":1},
    {"cpu":2,"core":1,"socket":0,"numa":0,"kind":0,"isolated":true},
    {"cpu":3,"core":2,"socket":0,"numa":0,"kind":0}],"distances":[[10]]})");
  auto given = options(1);
  given.topology = (dir.path() / "hybrid.json").string();
  given.annotations = {"kata-affinity.io/cpu-class=efficient",
                       "kata-affinity.io/cpu-class.app=fast", "example.org/note=a=b"};
  CHECK(run(given, false).out == "2\n");
  given.container = "app";
  CHECK(run(given, false).out == "0\n");
  given.cpu_class = "any";
  given.annotations.push_back("kata-affinity.io/prefer-isolated=true");
  CHECK(run(given, false).out == "2\n");
  given.annotations = {"kata-affinity.io/cpu-class=quick"};
  CHECK(input_error(run(given)).find("\"quick\" is not one of") != std::string::npos);
  given.annotations = {"fast"};
  CHECK(input_error(run(given)).find("--annotation: \"fast\" is not KEY=VALUE") !=
        std::string::npos);
}

TEST_CASE("every strategy answers, and fitted does not spread") {
  auto given = options(6);
  for (const char* strategy : {"packed", "distributed", "fitted"}) {
    given.strategy = strategy;
    CHECK(run(given).exit == Exit::kDone);
  }
  given.options = {"distribute-cpus-across-numa"};
  CHECK(input_error(run(given)).find("--strategy fitted takes the fewest nodes") !=
        std::string::npos);
}

TEST_CASE("allocate names the invalid option") {
  auto given = options(1);
  given.available = "0-";
  CHECK(input_error(run(given)).find("--available: \"0-\"") != std::string::npos);
  given.available = "0-99";
  CHECK(input_error(run(given)).find("--available: the machine does not have 16-99") !=
        std::string::npos);
  given = options(1);
  given.numa_affinity = "5";
  CHECK(input_error(run(given)).find("--numa-affinity") != std::string::npos);
  given = options(1);
  given.options = {"fast"};
  CHECK(input_error(run(given)).find("unknown CPU Manager Policy option: \"fast\"") !=
        std::string::npos);
  given.options = {"full-pcpus-only", "distribute-cpus-across-cores"};
  CHECK(input_error(run(given)).find("can not be used at the same time") != std::string::npos);
}

TEST_CASE("merge-hints reads providers with kubelet's meanings") {
  CHECK(merge(R"({"policy":"best-effort","numaNodes":[0,1],"options":[],
                  "providers":[{"cpu":[{"affinity":[0],"preferred":true}]}]})")
            .out == "{\"affinity\":[0],\"preferred\":true,\"admit\":true}\n");
  CHECK(merge(R"({"policy":"restricted","numaNodes":[0,1],
                  "providers":[null,{},{"a":null,"b":[{"affinity":null,"preferred":true}]}]})")
            .out == "{\"affinity\":[0,1],\"preferred\":true,\"admit\":true}\n");
  const Ended refused =
      merge(R"({"policy":"single-numa-node","numaNodes":[0,1],"providers":[{"a":[]}]})", false);
  CHECK(refused.exit == Exit::kDone);
  CHECK(refused.out == "NUMA nodes any, not preferred, refused\n");
  CHECK(merge(R"({"policy":"none","numaNodes":[0],"providers":[]})").out ==
        "{\"affinity\":null,\"preferred\":false,\"admit\":true}\n");
  CHECK(merge(R"({"policy":"best-effort","numaNodes":[0,1,2],
                  "options":["prefer-closest-numa-nodes","max-allowable-numa-nodes=8"],
                  "distances":[[10,30,20],[30,10,15],[20,15,10]],
                  "providers":[{"cpu":[{"affinity":[0,1],"preferred":true},
                                       {"affinity":[1,2],"preferred":true}]}]})")
            .out == "{\"affinity\":[1,2],\"preferred\":true,\"admit\":true}\n");
  CHECK(merge(R"({"policy":"best-effort","numaNodes":[0,1],"options":["prefer-cpu-alignment"],
                  "providers":[{"cpu":[{"affinity":[1],"preferred":true}]},
                               {"nic":[{"affinity":[0],"preferred":true}]}]})")
            .out == "{\"affinity\":[1],\"preferred\":false,\"admit\":true}\n");
}

TEST_CASE("merge-hints names what is wrong with its input") {
  CHECK(input_error(merge("{")).find("hints.json:1:") != std::string::npos);
  CHECK(input_error(merge(R"({"numaNodes":[0],"providers":[]})")).find("policy: missing") !=
        std::string::npos);
  CHECK(input_error(merge(R"({"policy":"best","numaNodes":[0],"providers":[]})")).find("policy:") !=
        std::string::npos);
  CHECK(input_error(merge(R"({"policy":"none","numaNodes":[8192],"providers":[]})"))
            .find("numaNodes: must hold node numbers from 0 to 8191") != std::string::npos);
  CHECK(input_error(merge(R"({"policy":"none","numaNodes":[0],"providers":[{"cpu":[{}]}]})"))
            .find("providers[0].cpu[0].affinity: missing") != std::string::npos);
  const std::string with_option = R"({"policy":"none","numaNodes":[0],"providers":[],"options":)";
  CHECK(input_error(merge(with_option + R"(["fast"]})")).find("unknown option \"fast\"") !=
        std::string::npos);
  CHECK(input_error(merge(R"({"policy":"restricted","numaNodes":[0],"providers":[],
                            "options":["max-allowable-numa-nodes=7"]})"))
            .find("should not be less than 8") != std::string::npos);
  CHECK(merge(with_option + R"(["max-allowable-numa-nodes=7"]})").exit == Exit::kDone);
  CHECK(input_error(merge(with_option + R"(["max-allowable-numa-nodes=x"]})"))
            .find("is not a number") != std::string::npos);
  CHECK(input_error(merge(R"({"policy":"best-effort","numaNodes":[0,1,2,3,4,5,6,7,8],
                            "options":["max-allowable-numa-nodes=8"],"providers":[]})"))
            .find("unsupported on machines with more than 8 NUMA Nodes") != std::string::npos);
}

TEST_CASE("a batch answers each line, also after an invalid one") {
  const tests::TempDir dir;
  dir.write("requests", R"({"id":"a","cpus":3}
{"id":7,"cpus":17,"available":"0-3"}

{"cpus":"x"}
{"cpus":2,"topology":"synthetic:pack:1 core:2 pu:1","strategy":"fitted"}
{"cpus":1,"topology":{"cpus":[{"cpu":5,"core":0,"socket":0,"numa":0}]}}
)");
  auto given = options(0);
  given.batch = dir.path() / "requests";
  const Ended ended = run(given);
  CHECK(ended.exit == Exit::kWrong);
  CHECK(ended.out == R"({"id":"a","cpus":"0-2"}
{"id":7,"error":"not enough cpus available to satisfy request: requested=17, available=4"}
{"line":4,"invalid":"cpus: must be a whole number, 0 or more"}
{"cpus":"0-1"}
{"cpus":"5"}
)");
}

TEST_CASE("a batch of merges has one problem per line") {
  const tests::TempDir dir;
  const std::string problem =
      R"({"id":1,"policy":"restricted","numaNodes":[0,1],"providers":[{"cpu":[{"affinity":[1],"preferred":true}]}]})";
  dir.write("problems", problem + '\n' + problem + '\n');
  const std::string answer = "{\"id\":1,\"affinity\":[1],\"preferred\":true,\"admit\":true}\n";
  CHECK(run(cli::MergeHintsOptions{dir.path() / "problems", true}) ==
        Ended{Exit::kDone, answer + answer, ""});
}

TEST_CASE("hints lists every set of nodes with enough CPUs, small ones first") {
  cli::HintsOptions given;
  given.topology = "synthetic:pack:2 numa:1 core:4 pu:2";
  given.cpus = 4;
  CHECK(run(given) == Ended{Exit::kDone,
                            R"({"hints":[{"affinity":[0],"preferred":true},)"
                            R"({"affinity":[1],"preferred":true},)"
                            R"({"affinity":[0,1],"preferred":false}]})"
                            "\n",
                            ""});
  given.available = "0-1,8-15";
  given.reusable = "0";
  CHECK(run(given, false).out == "NUMA nodes 0-1\n");
  given.available = "0-1";
  CHECK(run(given).exit == Exit::kNo);
}

TEST_CASE("kubelet's version decides where versions differ") {
  // Two sockets of two nodes with four CPUs each: 0-3, 4-7, 8-11, 12-15.
  auto given = options(5);
  given.topology = "synthetic:pack:2 numa:2 core:4 pu:1";
  given.available = "0-3,5,8-10,12-14";
  given.options = {"distribute-cpus-across-numa", "align-by-socket"};
  const std::string newest = run(given).out;
  given.kubelet_version = "1.36";
  const std::string before = run(given).out;
  CHECK(newest == "{\"cpus\":\"0-3,5\"}\n");
  CHECK(before != newest);
  given.kubelet_version = "2";
  CHECK(input_error(run(given)).find("--kubelet-version: \"2\"") != std::string::npos);
}

TEST_CASE("simulate follows kubelet's rules or ours") {
  const tests::TempDir dir;
  dir.write(
      "trace",
      R"({"op":"add","pod":"p","containers":[{"name":"i","kind":"init","cpus":4},{"name":"c","cpus":2}]}
{"op":"add","pod":"q","containers":[{"name":"c","cpus":5}]}
{"op":"restart"}
{"op":"remove","pod":"q"}
{"op":"resize","pod":"p","container":"c","cpus":4}
)");
  cli::SimulateOptions options{
      .topology = "synthetic:pack:1 core:4 pu:2", .trace = dir.path() / "trace", .reserved = "0"};
  const Ended kubelet = run(options);
  CHECK(kubelet.exit == Exit::kDone);
  CHECK(kubelet.out.find("\"refused\":\"not enough cpus available to satisfy request: "
                         "requested=5, available=3\"") != std::string::npos);
  CHECK(kubelet.out.find("\"absent\":true") != std::string::npos);
  options.strategy = "fitted";
  const Ended fitted = run(options);
  CHECK(fitted.out.find("\"pods\":2,\"refused\":0") != std::string::npos);
  CHECK(run(options, false).out.starts_with("add p: c "));
}

TEST_CASE("simulate names the invalid line of a trace") {
  const tests::TempDir dir;
  cli::SimulateOptions options{.topology = "synthetic:core:2 pu:1", .trace = dir.path() / "trace"};
  for (const char* line : {"{\"op\":\"ad\"}", "{\"op\":\"add\",\"pod\":\"p\"}", "{", "[]",
                           "{\"op\":\"remove\",\"pod\":\"p\",\"cpu\":1}"}) {
    dir.write("trace", std::string("{\"op\":\"restart\"}\n") + line + '\n');
    CHECK(input_error(run(options)).find("trace:2:") != std::string::npos);
  }
}
