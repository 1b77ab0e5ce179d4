// SPDX-License-Identifier: Apache-2.0
// /v1/quotas: which cgroups follow from a thread, which threads are refused, and what is wrong as a
// whole.
#include "affinity/helper/quota_service.hpp"

#include "tests/catch.hpp"
#include "tests/fake_calls.hpp"
#include "tests/fake_cgroup_tree.hpp"
#include "tests/fake_node.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text_log.hpp"

using namespace ka;
using namespace ka::helper;
using policy::CpuSet;

namespace {

const std::string kId(64, 'c');

/// A vCPU on CPU 2, and a process on the shared pool, 0-1, in two pods with quotas.
struct Scene {
  Scene() {
    node.process(100, 1, "qemu-system-x86", "/usr/bin/qemu-system-x86_64");
    node.thread(100, 110, "CPU 0/KVM");
    node.process(200, 1, "db", "/usr/bin/db");
    place(110, "/kubepods/pod1/" + kId + "/kata-affinity", {2});
    place(200, "/kubepods/pod2/" + kId, {0, 1});
    tree.quotas = {{"/kubepods", "900000 100000"},
                   {"/kubepods/pod1", "200000 100000"},
                   {"/kubepods/pod1/" + kId, "100000 100000"},
                   {"/kubepods/pod2", "200000 100000"}};
    before = tree.quotas;
  }

  void place(int tid, const std::string& cgroup, const CpuSet& cpus) {
    tree.put(tid, cgroup);
    calls.own[tid] = cpus;
  }
  std::string thread(int pid, int tid) const {
    const auto stat = base::ProcFs(node.proc()).stat(pid, tid);
    return R"({"pid":)" + std::to_string(pid) + R"(,"tid":)" + std::to_string(tid) +
           R"(,"start_time":)" + std::to_string(stat->start_time) + '}';
  }
  http::Response post(const std::string& threads) {
    return respond(
        {{QuotaService::kPath, service.verb()}},
        {.method = "POST", .target = "/v1/quotas", .body = R"({"threads":[)" + threads + "]}"});
  }
  /// The problem of the only thread of a request.
  std::string refusal(const std::string& threads) {
    const std::string body = post(threads).body, head = R"("problem":")";
    const auto from = body.find(head) + head.size();
    return body.substr(from, body.find("\"}]", from) - from);
  }

  tests::FakeNode node;
  tests::FakeCgroupTree tree;
  tests::FakeCalls calls{CpuSet::range(0, 7)};
  std::map<std::string, std::string> before;
  tests::TempDir dir;
  std::string lines;
  log::Log logger = tests::text_log(log::Level::kInfo, lines);
  QuotaKeeper keeper{tree, RecordFile<QuotaRecords>(dir.path(), "boot"), logger};
  base::Result<CpuSet> state_of_kubelet = CpuSet{0, 1};
  QuotaService service{keeper, tree, VmmThreads(node.proc()), calls,
                       [this](const CpuSet& cpus) -> base::Result<CpuSet> {
                         if (!state_of_kubelet) return state_of_kubelet;
                         return cpus - *state_of_kubelet;
                       }};
};

}  // namespace

TEST_CASE("no quota stops a thread from its container's cgroup up to its pod's, and none above") {
  Scene scene;
  CHECK(scene.post(scene.thread(100, 110)).body ==
        "{\"threads\":[{\"tid\":110,\"problem\":\"\"}],\"problem\":\"\"}\n");
  CHECK(scene.tree.quotas.at("/kubepods/pod1") == "max 100000");
  CHECK(scene.tree.quotas.at("/kubepods/pod1/" + kId) == "max 100000");
  CHECK(scene.tree.quotas.at("/kubepods") == "900000 100000");
  CHECK(scene.tree.quotas.at("/kubepods/pod2") == "200000 100000");
  CHECK(scene.post("").body == "{\"threads\":[],\"problem\":\"\"}\n");
  CHECK(scene.tree.quotas == scene.before);
}

TEST_CASE("GET repairs what others wrote, and says what the kernel refuses") {
  Scene scene;
  REQUIRE(scene.post(scene.thread(100, 110)).status == 200);
  scene.tree.quotas["/kubepods/pod1"] = "300000 100000";
  const auto get = [&] {
    return respond({{QuotaService::kPath, scene.service.verb()}},
                   {.method = "GET", .target = "/v1/quotas", .body = {}})
        .body;
  };
  CHECK(get() == "{\"threads\":[{\"tid\":110,\"problem\":\"\"}],\"problem\":\"\"}\n");
  CHECK(scene.tree.quotas.at("/kubepods/pod1") == "max 100000");
  scene.tree.quotas["/kubepods/pod1"] = "300000 100000";
  scene.tree.refuses["/kubepods/pod1/cpu.max"] = EACCES;
  CHECK(get().find("\"problem\":\"/kubepods/pod1: ") != std::string::npos);
}

TEST_CASE("a thread that may run on the shared pool, or is in no pod, keeps its quotas") {
  Scene scene;
  CHECK(scene.refusal(scene.thread(200, 200)) ==
        "it may run on CPUs 0-1, of kubelet's shared pool, or reserved");
  scene.place(200, "/system.slice/db.service", {3});
  CHECK(scene.refusal(scene.thread(200, 200)) == "it is in no cgroup of a pod of kubelet's");
  CHECK(scene.refusal(R"({"pid":200,"tid":200,"start_time":7})") == "the thread has ended");
  CHECK(scene.tree.quotas == scene.before);
}

TEST_CASE("a refused thread does not keep another from its own") {
  Scene scene;
  const auto response = scene.post(scene.thread(200, 200) + ',' + scene.thread(100, 110));
  CHECK(response.status == 200);
  CHECK(scene.tree.quotas.at("/kubepods/pod1") == "max 100000");
  CHECK(scene.tree.quotas.at("/kubepods/pod2") == "200000 100000");
}

TEST_CASE("while it cannot be judged what is kubelet's, quotas stay as they are") {
  Scene scene;
  REQUIRE(scene.post(scene.thread(100, 110)).status == 200);
  scene.state_of_kubelet = base::fail(base::ErrorCode::kTransient, "cannot read it");
  CHECK(scene.post("").status == 200);
  CHECK(scene.tree.quotas == scene.before);
  CHECK(scene.post(scene.thread(100, 110)).status == 503);
  CHECK(scene.tree.quotas == scene.before);
}

TEST_CASE("a wrong request for quotas is refused as a whole") {
  Scene scene;
  const std::string one = scene.thread(100, 110);
  for (const std::string& wrong : {one + ',' + one, std::string("7"), std::string("{}"),
                                   std::string(R"({"pid":0,"tid":1,"start_time":1})")}) {
    CAPTURE(wrong);
    CHECK(scene.post(wrong).status == 400);
  }
  CHECK(scene.tree.quotas == scene.before);
}

TEST_CASE("as many threads as the limit are read, and one more is refused") {
  const auto threads = [](std::size_t count) {
    std::string text = R"({"threads":[)";
    for (std::size_t i = 1; i <= count; ++i) {
      text += i == 1 ? "" : ",";
      text += R"({"pid":1,"tid":)" + std::to_string(i) + R"(,"start_time":1})";
    }
    return read_quota_threads(text + "]}");
  };
  CHECK(threads(kMostQuotaThreads)->size() == kMostQuotaThreads);
  CHECK(threads(kMostQuotaThreads + 1).error().message.find("more than 8192 threads") !=
        std::string::npos);
}
