// SPDX-License-Identifier: Apache-2.0
// Every metric by its name and value: tests/packaging/metric_values fails for one that no test
// asserts.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/version/version.hpp"
#include "tests/unit/api/scene.hpp"

using namespace ka;
using namespace std::chrono_literals;
using tests::Api;

namespace {

std::string page_of(Api& api) { return '\n' + api.call("GET", "/metrics").body; }

/// What of these lines the page does not have.
std::string missing(const std::string& page, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    if (page.find('\n' + line + '\n') == std::string::npos) text += line + '\n';
  }
  return text;
}

/// The gauges without labels that are not 0, in the order of the page.
std::vector<std::string> gauges(Api& api) {
  std::istringstream page(page_of(api));
  std::vector<std::string> found;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("# TYPE ") || !line.ends_with(" gauge")) continue;
    std::getline(page, line);
    if (line.find_first_of("{#") != std::string::npos || line.ends_with(" 0")) continue;
    found.push_back(line);
  }
  return found;
}

policy::MemoryFacts memory_on(int node, std::uint64_t bytes) {
  policy::MemoryFacts facts;
  facts.parts = {{.page = 4096, .placed = {{node, bytes}}, .free = {}}};
  return facts;
}

}  // namespace

TEST_CASE("each counter is exported under its own name", "[api]") {
  Api api;
  board::Counters& counters = api.scene.board().counters();
  counters.events["nri"] = 10;
  counters.runs = 11;
  counters.writes = 12;
  counters.cgroup_writes = 13;
  counters.drift_found = 14;
  counters.drift_repaired = 15;
  counters.partitions_undone = 25;
  counters.interrupt_writes = 16;
  counters.interrupt_drift_found = 17;
  counters.threads_gone = 18;
  counters.resource_class_writes = 24;
  counters.errors["state"] = 19;
  counters.memory_moved = 20;
  counters.memory_failed = 21;
  counters.late = 22;
  counters.class_problems["not-enough"] = 23;
  counters.reactions.add(1s);
  counters.answers.add(2s);
  counters.guest_reactions.add(3s);
  counters.narrowed_shims.add(4s);
  const std::string page = page_of(api);
  CAPTURE(page);
  CHECK(missing(page, {"kata_affinity_events_total{source=\"nri\"} 10",
                       "kata_affinity_runs_total 11",
                       "kata_affinity_writes_total 12",
                       "kata_affinity_cgroup_writes_total 13",
                       "kata_affinity_drift_found_total 14",
                       "kata_affinity_drift_repaired_total 15",
                       "kata_affinity_partitions_undone_total 25",
                       "kata_affinity_interrupt_writes_total 16",
                       "kata_affinity_interrupt_drift_found_total 17",
                       "kata_affinity_threads_gone_total 18",
                       "kata_affinity_resource_class_writes_total 24",
                       "kata_affinity_errors_total{kind=\"state\"} 19",
                       "kata_affinity_memory_moved_bytes_total 20",
                       "kata_affinity_memory_failed_bytes_total 21",
                       "kata_affinity_class_problems_total{problem=\"not-enough\"} 23",
                       "kata_affinity_late_total 22",
                       "kata_affinity_reaction_seconds_sum 1",
                       "kata_affinity_reaction_seconds_bucket{le=\"1\"} 1",
                       "kata_affinity_answer_seconds_sum 2",
                       "kata_affinity_guest_reaction_seconds_sum 3",
                       "kata_affinity_shim_narrowed_seconds_sum 4",
                       "kata_affinity_shim_narrowed_seconds_bucket{le=\"1\"} 0",
                       "kata_affinity_shim_narrowed_seconds_count 1"}) == "");
}

TEST_CASE("gauges sum over all pods and sandboxes", "[api]") {
  Api api;
  api.play_pod();
  api.good("PUT", "/v1/sandboxes/s2", R"({"vmm_pid":200})");
  api.good("PUT", "/v1/sandboxes/s2/containers/c", R"({"cpus":"6","exclusive":true})");
  api.good("PUT", "/v1/sandboxes/runc", R"({"pod_name":"shop/db"})");
  api.good("POST", "/v1/release?id=s2");
  board::MemoryView memory;
  memory.facts = memory_on(1, 8192);
  memory.plan.misplaced = 4096;
  api.scene.board().set_memory("s1", memory);
  api.scene.node.ran(100, 111, 0, 0, 2'500'000'000);
  api.scene.node.cpu_ran(4, 0, 0);
  api.good("GET", "/v1/node");
  api.scene.clock.advance(std::chrono::seconds(1));
  api.scene.node.cpu_ran(4, 3'000'000, 7, 11, 903);
  const std::string page = page_of(api);
  CAPTURE(page);
  CHECK(missing(page, {"kata_affinity_vcpu_interruptions_total{cpu=\"4\"} 7",
                       "kata_affinity_vcpu_interruption_seconds_total{cpu=\"4\"} 0.003",
                       "kata_affinity_vcpu_device_interrupts_total{cpu=\"4\"} 11",
                       "kata_affinity_vcpu_passed_through_interrupts_total{cpu=\"4\"} 3"}) == "");
  CHECK(missing(page,
                {"kata_affinity_vcpu_wait_seconds_total{pod=\"shop/cart\",container=\"app\"} 2.5",
                 "kata_affinity_contested_cpus 0", "kata_affinity_memory_bytes{node=\"1\"} 8192",
                 "kata_affinity_sandboxes_unseen 0", "kata_affinity_state_lost 0"}) == "");
  CHECK(gauges(api) == std::vector<std::string>{
                           "kata_affinity_foreign_cpus 2", "kata_affinity_sandboxes 2",
                           "kata_affinity_pods 3", "kata_affinity_released_sandboxes 1",
                           "kata_affinity_misplaced_memory_bytes 4096",
                           "kata_affinity_exclusive_cpus 3", "kata_affinity_shared_pool_cpus 5"});
  CHECK(missing(page, {std::string("kata_affinity_build_info{version=\"") + version::number() +
                       "\",commit=\"" + version::commit() + "\"} 1"}) == "");
}

TEST_CASE("threads that cannot be placed, seen or read have gauges", "[api]") {
  Api api;
  api.scene.calls.set_faults[112] = {EPERM, 1};
  api.good("PUT", "/v1/sandboxes/s1", R"({"vmm_pid":100})");
  api.good("PUT", "/v1/sandboxes/s1/containers/c", R"({"cpus":"2-5","exclusive":true})");
  const auto tasks = api.scene.node.proc() / "100/task";
  std::filesystem::rename(tasks, api.scene.node.proc() / "100/hidden");
  api.scene.node.write("proc/100/task", "");  // ENOTDIR
  api.scene.line().refresh("s1");
  api.scene.line().check_drift();
  api.scene.board().set_source(policy::ledger::Source::kNri,
                               {true, "containerd", false, {{"g", "no memory"}}});
  const std::string page = page_of(api);
  CAPTURE(page);
  CHECK(missing(page, {"kata_affinity_unmanaged_threads 1", "kata_affinity_sandboxes_unseen 2",
                       "kata_affinity_plan_warnings{code=\"too-few-vcpus\"} 1"}) == "");
}

TEST_CASE("threads that are not where they should be have gauges of their own", "[api]") {
  Api api;
  for (const int tid : {111, 112}) api.scene.calls.set_faults[tid] = {EPERM, 1};
  api.play_pod();
  for (const int tid : {100, 101, 110}) api.scene.calls.own[tid] = policy::CpuSet{7};
  api.good("POST", "/v1/verify");
  CHECK(gauges(api) == std::vector<std::string>{
                           "kata_affinity_sandboxes 1", "kata_affinity_pods 1",
                           "kata_affinity_drifted_threads 3", "kata_affinity_unmanaged_threads 2",
                           "kata_affinity_exclusive_cpus 2", "kata_affinity_shared_pool_cpus 6"});
}

TEST_CASE("interrupts have gauges by their state, and isolated containers one", "[api]") {
  Api api;
  line::Options options;
  options.settings.guest.agent = policy::plan::GuestAgent::kNone;
  api.scene.line().configure(options);
  const auto& node = api.scene.node;
  node.vfio_device("0000:01:00.0", 12, "vfio0", 0);
  for (int number = 45; number < 51; ++number) {
    node.msi("0000:01:00.0", number, "vfio-msix[0](0000:01:00.0)", "0-7");
  }
  node.fd(100, 30, "/dev/vfio/12");
  for (const int number : {45, 46, 47}) node.nail_interrupt(number);
  api.play_pod();
  for (const int number : {49, 50}) node.send_interrupt(number, "0");
  api.good("POST", "/v1/verify");
  CHECK(gauges(api) == std::vector<std::string>{
                           "kata_affinity_sandboxes 1", "kata_affinity_pods 1",
                           "kata_affinity_containers_isolated 1", "kata_affinity_interrupts 6",
                           "kata_affinity_drifted_interrupts 2",
                           "kata_affinity_unmanaged_interrupts 3", "kata_affinity_exclusive_cpus 2",
                           "kata_affinity_shared_pool_cpus 6"});
}

TEST_CASE("resource classes have gauges by answer, and values that are not set one", "[api]") {
  Api api;
  line::Options options;
  options.classes.by_name["gold"].nice = 5;
  options.classes.by_annotation = {policy::ClassKind::kScheduling};
  api.scene.line().configure(options);
  api.play_pod();
  api.good("PUT", "/v1/sandboxes/s1",
           R"({"annotations":{"scheduling-class.resource-policy.nri.io/container.app":"gold",)"
           R"("blockioclass.resource-policy.nri.io/container.app":"gold"}})");
  CHECK(missing(page_of(api), {"kata_affinity_resource_classes{state=\"granted\"} 1",
                               "kata_affinity_resource_classes{state=\"not-allowed\"} 1",
                               "kata_affinity_resource_classes{state=\"unknown\"} 0",
                               "kata_affinity_resource_class_values_unset 0"}) == "");
  for (const int tid : {110, 111, 112}) api.scene.calls.nices[tid] = 0;
  api.good("POST", "/v1/verify");
  CHECK(missing(page_of(api), {"kata_affinity_resource_class_values_unset 2"}) == "");
}

TEST_CASE("an RDT class that a thread is not in is in the document, and counted", "[api]") {
  Api api;
  line::Options options;
  options.classes.by_name["gold"].rdt.l3 = policy::parse_cache_share("50%");
  options.classes.by_annotation = {policy::ClassKind::kRdt};
  api.scene.line().configure(options);
  api.play_pod();
  api.scene.board().set_rdt({{}, false, {{"gold", {{}, {{111, ""}, {112, "it has ended"}}}}}});
  api.good("PUT", "/v1/sandboxes/s1",
           R"({"annotations":{"rdtclass.resource-policy.nri.io/container.app":"gold"}})");
  const boost::json::object document = api.good("GET", "/v1/sandboxes/s1");
  const boost::json::object& classes = document.at("classes").as_object();
  CHECK(tests::text(classes.at("rdt")) ==
        R"([{"vcpu":1,"tid":111,"wanted":"gold","drift":false},)"
        R"({"vcpu":2,"tid":112,"wanted":"gold","drift":true,"problem":"it has ended"}])");
  CHECK(tests::text(classes.at("requests")) ==
        R"([{"container":"c1","kind":"rdtclass","name":"gold","granted":false,)"
        R"("reason":"unset","text":"it has ended"}])");
  CHECK(missing(page_of(api), {"kata_affinity_resource_classes{state=\"granted\"} 0",
                               "kata_affinity_resource_classes{state=\"unset\"} 1",
                               "kata_affinity_resource_class_values_unset 1"}) == "");
  api.scene.board().set_rdt({"resctrl is not mounted", false, {}});
  CHECK(missing(page_of(api), {"kata_affinity_resource_class_values_unset 2"}) == "");
}

TEST_CASE("state that is lost or not on disk, and the wait after a start, have gauges", "[api]") {
  Api api;
  for (const char* pod : {"a", "b", "c"}) {
    std::ofstream(api.scene.state_dir() / (std::string(pod) + ".json")) << "{";
  }
  api.scene.line().expect(policy::ledger::Source::kNri);
  api.scene.line().adopt();
  for (const char* pod : {"s1", "s2"}) {
    std::filesystem::create_directory(api.scene.state_dir() / (std::string(pod) + ".json"));
    api.good("PUT", "/v1/sandboxes/" + std::string(pod), "{}");
  }
  CHECK(gauges(api) ==
        std::vector<std::string>{"kata_affinity_pods 2", "kata_affinity_start_waiting 1",
                                 "kata_affinity_state_lost 3", "kata_affinity_state_unsaved 2",
                                 "kata_affinity_shared_pool_cpus 8"});
}

TEST_CASE("sandboxes are counted by the state of their guest, sources by whether they are up",
          "[api]") {
  Api api;
  constexpr int kGuests = 10;
  for (int i = 0; i < kGuests; ++i) {
    const int pid = 1000 + 100 * i;
    const std::string id = "vm" + std::to_string(i);
    api.scene.boot_vm(pid, 1);
    REQUIRE(api.scene.add(id, pid));
    if (i < 4) continue;
    api.scene.board().set_guest(
        id, {.address = "vsock:3", .connected = i >= 7, .text = "", .current = i == 9});
  }
  api.scene.board().set_source(policy::ledger::Source::kNri, {true, ""});
  api.scene.board().set_source(policy::ledger::Source::kKubelet, {false, ""});
  const std::string page = page_of(api);
  CAPTURE(page);
  CHECK(missing(
            page,
            {"kata_affinity_guests{state=\"none\"} 4", "kata_affinity_guests{state=\"away\"} 3",
             "kata_affinity_guests{state=\"behind\"} 2", "kata_affinity_guests{state=\"placed\"} 1",
             "kata_affinity_source_up{source=\"nri\"} 1",
             "kata_affinity_source_up{source=\"kubelet\"} 0",
             "kata_affinity_threads{role=\"vcpu\"} 10"}) == "");
}

TEST_CASE("a CPU that two pods own, or two containers of one, counts as contested", "[api]") {
  Api api;
  for (const std::string pod : {"s1", "s2"}) {
    api.good("PUT", "/v1/sandboxes/" + pod, "{}");
    api.good("PUT", "/v1/sandboxes/" + pod + "/containers/c", R"({"cpus":"2","exclusive":true})");
  }
  CHECK(missing(page_of(api), {"kata_affinity_contested_cpus 1"}) == "");
  api.good("PUT", "/v1/sandboxes/s1/containers/d", R"({"cpus":"4","exclusive":true})");
  api.good("PUT", "/v1/sandboxes/s1/containers/e", R"({"cpus":"4","exclusive":true})");
  CHECK(missing(page_of(api),
                {"kata_affinity_contested_cpus 2",
                 "kata_affinity_contested_container_cpus{pod=\"s1\",container=\"c\"} 1",
                 "kata_affinity_contested_container_cpus{pod=\"s1\",container=\"e\"} 1",
                 "kata_affinity_contested_container_cpus{pod=\"s2\",container=\"c\"} 1"}) == "");
}

TEST_CASE("a container that names a claim which is not its own is counted", "[api]") {
  Api api;
  CHECK(missing(page_of(api), {"kata_affinity_claims_refused 0"}) == "");
  policy::ledger::ContainerSeen seen{.sandbox = "s1", .id = "c1", .spec = {}};
  seen.claims = std::vector<policy::ledger::PreparedClaim>{{"u1", {2, 3}}};
  api.scene.line().handle(policy::ledger::Event{policy::ledger::Source::kNri, seen});
  CHECK(missing(page_of(api), {"kata_affinity_claims_refused 1"}) == "");
}

TEST_CASE("time on CPUs of other pods is counted by the source that reported it", "[api]") {
  Api api;
  const auto now = api.scene.clock.now();
  const board::Cause cause{"kubelet", now};
  api.scene.board().trespasses().record("s", {4, 5, 6}, cause, now);
  CHECK(missing(page_of(api), {"kata_affinity_foreign_cpus 3"}) == "");
  api.scene.board().trespasses().record("s", {}, cause, now + 2s);
  const std::string page = page_of(api);
  CAPTURE(page);
  CHECK(missing(page, {"kata_affinity_foreign_cpus 0",
                       "kata_affinity_foreign_cpus_touched_total{source=\"kubelet\"} 3",
                       "kata_affinity_foreign_cpus_seconds_sum{source=\"kubelet\"} 2"}) == "");
}

TEST_CASE("a source that is read only at each drift check is late, wherever one looks", "[api]") {
  Api api;
  using policy::ledger::Source;
  api.scene.board().set_source(Source::kKubelet, {true, "static"});
  api.scene.board().set_source(Source::kCgroup, {true, "masks"});
  base::Error full = base::system_error(ENOSPC, "cannot watch /var/lib/kubelet");
  api.scene.board().set_late(Source::kKubelet, full);
  api.scene.board().set_late(Source::kBundle, full);
  const boost::json::object list = api.good("GET", "/v1/sandboxes");
  std::string late;
  for (const boost::json::value& source : list.at("sources").as_array()) {
    if (!source.as_object().contains("late")) continue;
    late += std::string(source.at("source").as_string()) + ' ';
    CHECK(std::string(source.at("late").as_string()) == full.message);
    CHECK(source.at("remedy") == "sysctl -w fs.inotify.max_user_watches=1048576");
    CHECK(source.at("up") == true);
  }
  CHECK(late == "kubelet bundle ");
  CHECK(missing(page_of(api), {"kata_affinity_source_late{source=\"kubelet\"} 1",
                               "kata_affinity_source_late{source=\"bundle\"} 1",
                               "kata_affinity_source_late{source=\"cgroup\"} 0"}) == "");
  const boost::json::object report = api.good("POST", "/v1/verify");
  CHECK(report.at("verdict") == "degraded");
  CHECK(report.at("findings").at(0).at("reason") == "source-late");
  CHECK(report.at("findings").at(0).at("remedy") ==
        "sysctl -w fs.inotify.max_user_watches=1048576");
}

TEST_CASE("pods of which cannot be seen whether they have a VM count as unseen", "[api]") {
  Api api;
  api.scene.board().set_source(policy::ledger::Source::kNri,
                               {.up = true, .text = "", .absent = false, .unseen = {{"p", "why"}}});
  CHECK(missing(page_of(api), {"kata_affinity_sandboxes_unseen 1"}) == "");
}
