// SPDX-License-Identifier: Apache-2.0
// /v1/partitions: what is refused as a whole, and the form of what holds; the record's form; names
// of cgroups.
#include "affinity/helper/partition_service.hpp"

#include "affinity/helper/exclusive_cpus.hpp"
#include "tests/catch.hpp"
#include "tests/fake_cgroup_tree.hpp"
#include "tests/fake_cpu_power.hpp"
#include "tests/fake_kernel_threads.hpp"
#include "tests/fake_node.hpp"
#include "tests/fake_scheduling.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text_log.hpp"

using namespace ka;
using namespace ka::helper;
using policy::CpuSet;

namespace {

struct Scene {
  Scene() {
    node.process(100, 1, "qemu-system-x86", "/usr/bin/qemu-system-x86_64");
    node.thread(100, 110, "CPU 0/KVM");
    tree.add("/vm", {0, 1, 2, 3});
    tree.put(100, "/vm");
    tree.put(110, "/vm");
  }

  http::Response call(const std::string& method, const std::string& body = {}) {
    return respond({{PartitionService::kPath, service.verb()}},
                   {.method = method, .target = "/v1/partitions", .body = body});
  }
  std::string thread(int tid) const {
    const auto stat = base::ProcFs(node.proc()).stat(100, tid);
    return R"({"pid":100,"tid":)" + std::to_string(tid) + R"(,"start_time":)" +
           std::to_string(stat->start_time) + '}';
  }
  std::string partition(const std::string& cpus, int priority = 0, bool full_power = false) const {
    return R"({"vmm":)" + thread(100) + R"(,"cpus":")" + cpus + R"(","vcpus":[)" + thread(110) +
           R"(],"priority":)" + std::to_string(priority) + R"(,"full_power":)" +
           (full_power ? "true}" : "false}");
  }
  std::string held(const std::string& cpus) const {
    return R"({"partitions":[{"vmm":)" + thread(100) + R"(,"cpus":")" + cpus +
           R"(","problem":"","realtime_problem":"","power_problem":"","undone":0}],"problem":""})" +
           '\n';
  }
  std::string refusal(const std::string& body) {
    const auto response = call("POST", body);
    CHECK(response.status == 400);
    CHECK(tree.writes == 0);
    return response.body;
  }

  tests::FakeNode node;
  tests::FakeCgroupTree tree;
  tests::FakeScheduling scheduling;
  tests::TempDir dir;
  std::string lines;
  log::Log logger = tests::text_log(log::Level::kInfo, lines);
  tests::FakeKernelThreads kernel_threads;
  PartitionKeeper keeper{tree,
                         scheduling,
                         VmmThreads(node.proc()),
                         kernel_threads,
                         RecordFile<PartitionRecords>(dir.path(), "boot"),
                         logger};
  tests::FakeCpuPower cpu_power;
  PowerKeeper power{cpu_power, RecordFile<PowerRecords>(dir.path(), "boot"), logger};
  CpuSet pool = {0, 1};
  base::Result<CpuSet> state_of_kubelet = CpuSet{};
  PartitionService service{keeper, power, [this](const CpuSet& cpus) -> base::Result<CpuSet> {
                             if (!state_of_kubelet) return state_of_kubelet;
                             return cpus - pool;
                           }};
};

std::string wrapped(const std::string& partitions) {
  return R"({"partitions":[)" + partitions + "]}";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("partitions are requested, read, and given up") {
  Scene scene;
  CHECK(scene.call("POST", wrapped(scene.partition("2-3"))).body == scene.held("2-3"));
  CHECK(scene.call("GET").body == scene.held("2-3"));
  CHECK(scene.call("POST", wrapped("")).body == "{\"partitions\":[],\"problem\":\"\"}\n");
  CHECK(scene.tree.isolated().empty());
  CHECK(scene.call("PUT").status == 405);
}

TEST_CASE("a wrong request for partitions changes nothing") {
  Scene scene;
  const std::string one = scene.partition("2-3");
  CHECK(has(scene.refusal("{"), "body:1"));
  CHECK(has(scene.refusal("{}"), "partitions"));
  CHECK(has(scene.refusal(wrapped(scene.partition(""))), "partitions[0].cpus: has no CPU"));
  CHECK(has(scene.refusal(wrapped(one + ',' + one)), "partitions[1].vmm: is there twice"));
  CHECK(has(scene.refusal(wrapped(scene.partition("2-3", 50))),
            "partitions[0].priority: is above 49"));
  const std::string other =
      R"({"vmm":{"pid":7,"tid":7,"start_time":1},"cpus":"3","vcpus":[{"pid":7,"tid":8,"start_time":1}],"priority":0,"full_power":false})";
  CHECK(has(scene.refusal(wrapped(one + ',' + other)),
            "partitions[1].cpus: are in another partition, too"));
  const std::string mixed = R"({"vmm":{"pid":7,"tid":7,"start_time":1},"cpus":"5","vcpus":[)" +
                            scene.thread(110) + R"(],"priority":0,"full_power":false})";
  CHECK(has(scene.refusal(wrapped(mixed)), "partitions[0].vcpus[0]: is not a thread of the VMM"));
}

namespace {

std::string thread_of(int pid, int tid) {
  return R"({"pid":)" + std::to_string(pid) + R"(,"tid":)" + std::to_string(tid) +
         R"(,"start_time":1})";
}

/// A partition of the VMM `pid` with the CPU of that number, and as many vCPUs.
std::string wide_partition(int pid, int vcpus) {
  std::string threads;
  for (int i = 0; i < vcpus; ++i) threads += (i == 0 ? "" : ",") + thread_of(pid, pid + i);
  return R"({"vmm":)" + thread_of(pid, pid) + R"(,"cpus":")" + std::to_string(pid + 1) +
         R"(","vcpus":[)" + threads + R"(],"priority":0,"full_power":false})";
}

std::string partitions(int count) {
  std::string text;
  for (int i = 1; i <= count; ++i) text += (i == 1 ? "" : ",") + wide_partition(i, 1);
  return wrapped(text);
}

}  // namespace

TEST_CASE("as many partitions and vCPUs as the limits are read, and one more is refused") {
  CHECK(read_partitions(partitions(kMostPartitions))->size() == kMostPartitions);
  const auto many = read_partitions(partitions(kMostPartitions + 1));
  CHECK(has(many.error().message, "more than 1024 partitions"));
  CHECK(read_partitions(wrapped(wide_partition(1, kMostPartitionVcpus))));
  const auto wide = read_partitions(wrapped(wide_partition(1, kMostPartitionVcpus + 1)));
  CHECK(has(wide.error().message, "more than 8192 in all"));
}

TEST_CASE("what cannot be judged now is another status, and stays as it is") {
  Scene scene;
  REQUIRE(scene.call("POST", wrapped(scene.partition("2-3"))).status == 200);
  scene.state_of_kubelet = base::fail(base::ErrorCode::kTransient, "cannot read it");
  CHECK(scene.call("POST", wrapped(scene.partition("2"))).status == 503);
  scene.service.check();
  CHECK(scene.tree.isolated() == "2-3");
  scene.state_of_kubelet = CpuSet{};
  scene.pool = {0, 1, 3};
  scene.service.check();
  CHECK(scene.tree.isolated().empty());
}

TEST_CASE("records of partitions read back as they were written") {
  PartitionRecords records;
  records.partitions[{100, 100, 9}] = {
      {{100, 100, 9}, {2, 3}, {{100, 110, 10}}, 7, true}, "/a/b", true, {{{100, 110, 10}, {3, 0}}}};
  records.added["/a"] = {2, 3};
  records.kernel_masks["89 276"] = {4, 5};
  const auto again = from_text<PartitionRecords>(to_text(records, "boot"), "boot");
  REQUIRE(again);
  CHECK(*again == records);
}

TEST_CASE("names of cgroups") {
  for (const char* good : {"/a", "/a/b.slice/c:d", "/kubepods-pod1.slice:cri-containerd:x"}) {
    CHECK(is_cgroup_path(good));
  }
  for (const char* wrong : {"", "/", "a", "/a/", "//a", "/a/../b", "/../a", "/a/./b", "/a\nb"}) {
    CHECK_FALSE(is_cgroup_path(wrong));
  }
  CHECK(way_to("/a/b/c") == std::vector<std::string>{"/a", "/a/b", "/a/b/c"});
  CHECK(way_to("/a") == std::vector<std::string>{"/a"});
}

TEST_CASE("CPUs of a partition are at full power where that is requested, and only with it") {
  Scene scene;
  const char* const file = "2/power/pm_qos_resume_latency_us";
  scene.cpu_power.values[file] = "0";
  REQUIRE(scene.call("POST", wrapped(scene.partition("2-3", 1, true))).status == 200);
  CHECK(scene.cpu_power.values[file] == "n/a");
  REQUIRE(scene.call("POST", wrapped(scene.partition("2-3", 1))).status == 200);
  CHECK(scene.cpu_power.values[file] == "0");
  scene.tree.configure("/vm", {2, 3});
  REQUIRE(scene.call("POST", wrapped(scene.partition("2-3", 1, true))).status == 200);
  CHECK(scene.cpu_power.values[file] == "0");
  scene.tree.configure("/vm", {0, 1, 2, 3});
  REQUIRE(scene.call("POST", wrapped(scene.partition("2-3", 1, true))).status == 200);
  scene.service.ended({100, 100, base::ProcFs(scene.node.proc()).stat(100, 100)->start_time});
  CHECK(scene.cpu_power.values[file] == "0");
  CHECK_FALSE(scene.service.holds());
}

TEST_CASE("CPUs of the shared pool are refused, and other partitions are made") {
  Scene scene;
  scene.node.process(200, 1, "qemu-system-x86", "/usr/bin/qemu-system-x86_64");
  scene.tree.add("/vm2", {0, 4, 5});
  scene.tree.put(200, "/vm2");
  const auto start = base::ProcFs(scene.node.proc()).stat(200, 200)->start_time;
  const std::string other = R"({"pid":200,"tid":200,"start_time":)" + std::to_string(start) + '}';
  const std::string wrong = R"({"vmm":)" + other + R"(,"cpus":"1,4","vcpus":[)" + other +
                            R"(],"priority":0,"full_power":false})";
  const auto response = scene.call("POST", wrapped(wrong + ',' + scene.partition("2-3")));
  CHECK(response.status == 200);
  CHECK(has(response.body, R"("problem":"1 is of kubelet's shared pool, or reserved")"));
  CHECK(scene.tree.isolated() == "2-3");
}

TEST_CASE("a partition without vCPUs is refused") {
  Scene scene;
  CHECK(has(scene.refusal(wrapped(R"({"vmm":)" + scene.thread(100) +
                                  R"(,"cpus":"2","vcpus":[],"priority":0,"full_power":false})")),
            "partitions[0].vcpus: has no vCPU"));
}

TEST_CASE("power of CPUs is requested, read, refused and given up") {
  Scene scene;
  const std::string file = tests::FakeCpuPower::name_of(2, "power/pm_qos_resume_latency_us");
  scene.cpu_power.values[file] = "0";
  const auto call = [&](const std::string& body) {
    return respond({{PartitionService::kPowerPath, scene.service.power_verb()}},
                   {.method = "POST", .target = "/v1/power", .body = body});
  };
  const auto row = [](const char* cpus, const char* latency, const char* governor = "") {
    return R"({"cpus":")" + std::string(cpus) + R"(","latency":")" + latency + R"(","governor":")" +
           governor + "\"}";
  };
  const auto rows = [](const std::string& all) { return R"({"cpus":[)" + all + "]}"; };
  const std::string why = "1 is of kubelet's shared pool, or reserved";
  CHECK(call(rows(row("1-2", "5"))).body == R"({"problems":[{"cpu":1,"latency":")" + why +
                                                R"(","governor":")" + why + R"("}],"problem":""})" +
                                                '\n');
  CHECK(scene.cpu_power.values[file] == "5");
  for (const std::string& wrong :
       {row("2", "-1"), row("2", "any"), row("2", "", "../x"), row("2", "", "a b"),
        row("2", "5") + ',' + row("2-3", "5"), std::string("{}")}) {
    CAPTURE(wrong);
    CHECK(call(rows(wrong)).status == 400);
    CHECK(scene.cpu_power.values[file] == "5");
  }
  scene.pool = {0, 1, 2};
  scene.service.check();
  CHECK(scene.cpu_power.values[file] == "0");
  scene.pool = {0, 1};
  REQUIRE(call(rows(row("2", "5"))).status == 200);
  CHECK(scene.service.restore().empty());
  CHECK(scene.cpu_power.values[file] == "0");
}

TEST_CASE("a partition that the host's floor refuses does not keep the others from theirs") {
  Scene scene;
  scene.node.process(200, 1, "db", "/usr/bin/db");
  const std::string cgroup = "/kubepods/pod3/" + std::string(64, 'c');
  scene.tree.add("/kubepods");
  scene.tree.add("/kubepods/pod3");
  scene.tree.add(cgroup, {3});
  scene.tree.put(200, cgroup);
  PartitionService service(scene.keeper, scene.power, [](const CpuSet& cpus) {
    if (!cpus.contains(2)) return base::Result<CpuSet>(cpus);
    return base::Result<CpuSet>(base::fail(base::ErrorCode::kInvalid, "2 is kept for the host"));
  });
  const auto stat = base::ProcFs(scene.node.proc()).stat(200, 200);
  const std::string other = R"({"vmm":{"pid":200,"tid":200,"start_time":)" +
                            std::to_string(stat->start_time) +
                            R"(},"cpus":"3","vcpus":[],"priority":0,"full_power":false,)"
                            R"("of_container":true,"unbalanced":true})";
  const auto response = respond({{PartitionService::kPath, service.verb()}},
                                {.method = "POST",
                                 .target = "/v1/partitions",
                                 .body = wrapped(scene.partition("2") + ',' + other)});
  CHECK(response.status == 200);
  CHECK(has(response.body, R"("problem":"2 is kept for the host")"));
  CHECK(scene.tree.read(cgroup, "cpuset.cpus.partition") == "isolated\n");
}
