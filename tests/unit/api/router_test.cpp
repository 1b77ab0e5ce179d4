// SPDX-License-Identifier: Apache-2.0
// The API's calls against a real line on a node made of files.
#include "tests/temp_dir.hpp"
#include "tests/unit/api/scene.hpp"

using namespace ka;
using namespace ka::tests;

TEST_CASE("any thread name gives valid JSON", "[api]") {
  Api api;
  api.scene.node.thread(100, 120, "\xff\xfe\x1b[2J\n\xc2\x9b");
  api.play_pod();
  for (const char* target : {"/v1/sandboxes", "/v1/sandboxes/s1", "/v1/node", "/v1/explain/s1"}) {
    const http::Response response = api.call("GET", target);
    CAPTURE(target, response.body);
    boost::system::error_code error;
    json::parse(response.body, error);
    CHECK_FALSE(error);
  }
  CHECK(api.call("GET", "/v1/sandboxes/s1").body.find(R"(\\xff\\xfe\\x1b[2J\\x0a\\u{009b})") !=
        std::string::npos);
}

TEST_CASE("outside managed mode pools and classes are refused, with what to use", "[api]") {
  Api api;
  const std::string refused =
      "409 mode is not \"managed\": kubelet gives containers their CPUs, and `kata-affinityctl "
      "map` shows who has which. For the change see docs/use/managed.md";
  CHECK(api.bad("GET", "/v1/pools") == refused);
  CHECK(api.bad("PUT", "/v1/classes/s1", R"({"class":"none"})") == refused);
  CHECK(api.bad("PUT", "/v1/class-requests/s1", R"({"container":"app"})") == refused);
}

TEST_CASE("names have a maximum length", "[api]") {
  Api api;
  api.play_pod();
  const std::string c1 = "/v1/sandboxes/s1/containers/c1";
  const std::string longest(512, 'n');
  api.good("PUT", c1, R"({"name":")" + longest + "\"}");
  CHECK(api.good("GET", "/v1/sandboxes/s1").at("containers").at(0).at("name") ==
        json::value(longest));
  CHECK(api.bad("PUT", c1, R"({"name":")" + longest + "n\"}") ==
        "400 name: is longer than 512 bytes");
}

TEST_CASE("containers sent by PUT are placed, shown and removed", "[api]") {
  Api api;
  api.play_pod();
  CHECK(api.scene.cpus(111) == "4");
  CHECK(api.scene.cpus(112) == "5");

  const json::object s1 = api.good("GET", "/v1/sandboxes/s1");
  CHECK(s1.at("id") == "s1");
  CHECK(s1.at("pod_name") == "shop/cart");
  CHECK(s1.at("vmm_pid") == 100);
  CHECK(s1.at("mask") == "0-1,4-5");
  CHECK(s1.at("mems") == "0");
  CHECK(s1.at("cgroup_cpus") == "0-7");
  CHECK(s1.at("vcpu_source") == "kvm-debugfs, index by thread-names");
  CHECK(s1.at("drift") == 0);
  json::object container = s1.at("containers").at(0).as_object();
  for (const char* own_test : {"isolated", "obstacles"}) container.erase(own_test);
  CHECK(
      text(container) ==
      R"({"id":"c1","name":"app","cpus":"4-5","mems":"0","exclusive":true,"quota":200000,)"
      R"("period":100000,"shares":0,"exited":false,"source":"api","vcpus":"1-2","dedicated":true,"guest":null})");
  CHECK(s1.at("vcpus").at(1).at("cpus") == "4");
  CHECK(s1.at("vcpus").at(1).at("role") == "dedicated");
  CHECK(s1.at("vcpus").at(1).at("apic_id") == 1);
  CHECK(s1.at("reason_codes").as_array().size() == s1.at("reasons").as_array().size());

  const json::array& threads = s1.at("threads").as_array();
  REQUIRE(threads.size() == 5);
  CHECK(threads[1].at("role") == "iothread");
  CHECK(threads[3].at("tid") == 111);
  CHECK(threads[3].at("vcpu") == 1);
  CHECK(threads[3].at("wanted") == "4");
  CHECK(threads[3].at("actual") == "4");

  api.good("DELETE", "/v1/sandboxes/s1/containers/c1");
  CHECK(api.good("GET", "/v1/sandboxes/s1").at("mask") == "0-1");
  api.good("DELETE", "/v1/sandboxes/s1");
  CHECK(api.good("GET", "/v1/sandboxes").at("sandboxes").as_array().empty());
}

TEST_CASE("the list holds the same documents as the single calls", "[api]") {
  Api api;
  api.play_pod();
  api.good("PUT", "/v1/sandboxes/a", R"({"vmm_pid":200})");
  const json::array all = api.good("GET", "/v1/sandboxes").at("sandboxes").as_array();
  REQUIRE(all.size() == 2);
  CHECK(all[0] == api.good("GET", "/v1/sandboxes/a"));
  CHECK(all[1] == api.good("GET", "/v1/sandboxes/s1"));
}

TEST_CASE("the response to a change reports what was done", "[api]") {
  Api api;
  api.good("PUT", "/v1/sandboxes/s1", R"({"vmm_pid":100})");
  const json::object done =
      api.good("PUT", "/v1/sandboxes/s1/containers/c1", R"({"cpus":"4-5","exclusive":true})");
  CHECK(done.at("planned") == 1);
  CHECK(done.at("writes") == 5);
  CHECK(done.at("failed") == 0);
  CHECK(done.at("seconds").is_double());
}

TEST_CASE("a monitor's socket that cannot be examined is refused", "[api]") {
  Api api;
  tests::TempDir files;
  const auto loop = files.path() / "loop";
  std::filesystem::create_symlink(loop, loop);
  CHECK(api.bad("PUT", "/v1/sandboxes/s2", "{\"qmp_socket\":\"" + loop.string() + "\"}") ==
        "400 " + loop.string() + ": Too many levels of symbolic links");
}

TEST_CASE("an invalid request gets its reason and changes nothing", "[api]") {
  Api api;
  api.play_pod();
  const std::string before = text(api.good("GET", "/v1/sandboxes"));
  const std::string c1 = "/v1/sandboxes/s1/containers/c1";

  CHECK(api.bad("PUT", c1, "{") == "400 body:1:2: not JSON: incomplete JSON");
  CHECK(api.bad("PUT", c1, "") == "400 body:1:1: not JSON: incomplete JSON");
  CHECK(api.bad("PUT", c1, "[]") == "400 must be an object");
  CHECK(api.bad("PUT", c1, R"({"cpuz":"1"})") == "400 cpuz: unknown key");
  CHECK(api.bad("PUT", c1, R"({"cpus":3})") == "400 cpus: must be a string");
  CHECK(api.bad("PUT", c1, R"({"cpus":"5-2"})") ==
        "400 cpus: \"5-2\": range ends before it starts (position 0)");
  CHECK(api.bad("PUT", c1, R"({"cpus":"4-9"})") ==
        "400 cpus: this machine has no CPU 8-9 (it has 0-7)");
  CHECK(api.bad("PUT", c1, R"({"mems":"1"})") == "400 mems: this machine has no node 1 (it has 0)");
  CHECK(api.bad("PUT", c1, std::string(100, '[')) == "400 body:1:33: not JSON: too deep");
  CHECK(api.bad("PUT", c1, R"({"name":"\u001b[2J"})") == "400 name: has control characters");
  CHECK(api.bad("PUT", c1, R"({"name":"\u009b31m"})") == "400 name: has control characters");
  CHECK(api.bad("PUT", c1, R"({"name":"\u202etxt"})") == "400 name: has control characters");
  CHECK(api.bad("PUT", c1, R"({"cpus":"0\n"})") == "400 cpus: has control characters");
  CHECK(api.bad("PUT", "/v1/sandboxes/s2", R"({"qmp_socket":"/etc/passwd"})") ==
        "400 /etc/passwd: is not a socket");
  CHECK(api.bad("PUT", "/v1/sandboxes/s2", R"({"agent":"unix:///etc/passwd"})") ==
        "400 agent: /etc/passwd: is not a socket");
  CHECK(api.bad("PUT", c1, R"({"period":-1})") == "400 period: must be 0 or more");
  CHECK(api.bad("PUT", c1, R"({"shares":-1})") == "400 shares: must be 0 or more");
  CHECK(api.bad("PUT", "/v1/sandboxes/s1", R"({"pod_name":"a\nb"})") ==
        "400 pod_name: has control characters");
  CHECK(api.bad("PUT", "/v1/sandboxes/s9/containers/c1", R"({"cpus":"1"})") ==
        "404 no sandbox \"s9\"");
  CHECK(api.bad("PUT", "/v1/sandboxes/s2", R"({"vmm_pid":999})") ==
        "400 vmm_pid: process 999 does not exist");
  CHECK(api.bad("PUT", "/v1/sandboxes/s2", R"({"vmm_pid":100})") ==
        "409 vmm_pid: process 100 belongs to sandbox \"s1\"");
  CHECK(api.bad("PUT", "/v1/sandboxes/s2", R"({"qmp_socket":"/run/vc/vm/s2/qmp.sock"})")
            .starts_with("400 "));
  CHECK(api.bad("PUT", "/v1/sandboxes/s2", R"({"domain":"vm1"})") ==
        "400 domain: libvirt is not configured (libvirt_uri)");
  CHECK(api.bad("GET", "/v1/sandboxes/s9") == "404 no sandbox \"s9\"");
  CHECK(api.bad("GET", "/v1/explain/s9") == "404 no sandbox \"s9\"");
  CHECK(api.bad("DELETE", "/v1/sandboxes/s1/containers/c9") ==
        "404 sandbox \"s1\" has no container \"c9\"");
  CHECK(api.bad("POST", "/v1/reconcile?id=s9") == "404 no sandbox \"s9\"");
  CHECK(text(api.good("GET", "/v1/sandboxes")) == before);
}

TEST_CASE("paths, methods and ids are parsed strictly", "[api]") {
  Api api;
  api.play_pod();
  CHECK(api.good("GET", "/v1/sandboxes/s%31").at("id") == "s1");
  CHECK(api.bad("GET", "/").starts_with("400 "));
  CHECK(api.bad("GET", "v1/node").starts_with("400 "));
  CHECK(api.bad("GET", "/v1//node").starts_with("400 "));
  CHECK(api.bad("GET", "/v2/node") == "404 no such resource");
  CHECK(api.bad("GET", "/v1/sandboxes/s1/containers").starts_with("404 "));
  CHECK(api.bad("GET", "/v1/sandboxes/a%2").starts_with("400 "));
  CHECK(api.bad("GET", "/v1/sandboxes/a%2fb").starts_with("400 sandbox id must be"));
  CHECK(api.bad("GET", "/v1/sandboxes/%2e%2e").starts_with("400 sandbox id must be"));
  CHECK(api.bad("PUT", "/v1/sandboxes/s1/containers/%00", "{}").starts_with("400 container id"));
  CHECK(api.bad("GET", "/v1/sandboxes/" + std::string(129, 'a')).starts_with("400 "));
  CHECK(api.bad("GET", "/v1/node?x=1") == "400 unknown query parameter \"x\"");
  CHECK(api.bad("GET", "/v1/node?%ff%1b=1") == "400 unknown query parameter \"\\xff\\x1b\"");
  CHECK(api.bad("GET", "/v1/sandboxes/s1%0d%0aX").starts_with("400 sandbox id must be"));
  CHECK(api.bad("POST", "/v1/reconcile?id=s1&id=s1").starts_with("400 "));
  const auto refused = api.call("PATCH", "/v1/sandboxes/s1");
  CHECK(refused.status == 405);
  CHECK(refused.allow == "GET, PUT, DELETE");
}

TEST_CASE("release restores masks, reconcile places again", "[api]") {
  Api api;
  api.play_pod();
  api.good("POST", "/v1/release?id=s1");
  CHECK(api.scene.cpus(111) == "0-7");
  const json::object released = api.good("GET", "/v1/sandboxes/s1");
  CHECK(released.at("released") == true);
  CHECK(released.at("drift") == 0);  // nobody wants it elsewhere
  const std::string why = text(api.good("GET", "/v1/explain/s1").at("results"));
  CHECK(why == R"(["released: no thread is placed"])");
  const json::object report = api.good("POST", "/v1/verify");
  CHECK(report.at("ok") == true);
  CHECK(report.at("released") == 1);
  api.good("POST", "/v1/reconcile?id=s1");
  CHECK(api.scene.cpus(111) == "4");
  api.good("POST", "/v1/release");
  CHECK(api.scene.cpus(111) == "0-7");
  api.good("POST", "/v1/reconcile");
  CHECK(api.scene.cpus(111) == "4");
}

TEST_CASE("in observe mode responses say that nothing is written", "[api]") {
  Api api;
  line::Options options = tests::at_home();
  options.observe = true;
  api.scene.line().configure(options);
  api.play_pod();
  CHECK(api.good("GET", "/v1/sandboxes/s1").at("observed") == true);
  const json::object why = api.good("GET", "/v1/explain/s1");
  CHECK(why.at("results").at(0) == "mode is \"observe\": the plan below is not applied");
}

TEST_CASE("explain gives facts with their sources, rules and results", "[api]") {
  Api api;
  api.play_pod();
  const json::object why = api.good("GET", "/v1/explain/s1");
  const std::string facts = text(why.at("facts"));
  const auto has = [](const std::string& all, const char* part) {
    CAPTURE(all, part);
    CHECK(all.find(part) != std::string::npos);
  };
  has(facts, R"({"text":"VMM is process 100","source":"api"})");
  has(facts, R"({"text":"VM has vCPUs 0-2","source":"kvm-debugfs, index by thread-names"})");
  has(facts, R"(container c1 (app) owns CPUs 4-5 exclusively, memory on node 0, CFS quota)");
  has(facts, R"(container c2 shares CPUs 0-1 with others)");
  has(facts, R"(the node's shared pool is CPUs 0-3,6-7)");
  has(facts, R"("source":"configuration")");
  has(text(why.at("rules")), R"("code":"dedicated")");
  has(text(why.at("results")), "vCPU 1 runs only on CPU 4, for container c1");
  has(text(why.at("results")), "vCPU 0 floats on CPUs 0-1");
  has(text(why.at("results")), "1 iothread may use CPUs 0-1");
  api.scene.calls.own[111] = policy::CpuSet{0, 1};
  api.scene.calls.set_faults[111] = {EPERM, 100};
  api.good("POST", "/v1/reconcile?id=s1");
  const std::string stuck = text(api.good("GET", "/v1/explain/s1").at("results"));
  has(stuck, "thread 111 (vCPU)");
  has(stuck, "vCPU 1 should run only on CPU 4, for container c1");
  has(stuck, "vCPU 2 runs only on CPU 5, for container c1");
  for (const int tid : {100, 101, 110}) api.scene.calls.own[tid] = policy::CpuSet{7};
  api.good("POST", "/v1/verify");
  const std::string moved = text(api.good("GET", "/v1/explain/s1").at("results"));
  has(moved, "vCPU 0 should float on CPUs 0-1");
  has(moved, "1 iothread should use CPUs 0-1");
}

TEST_CASE("passed-through devices are shown with their interrupts, explained and counted",
          "[api]") {
  Api api;
  const auto& node = api.scene.node;
  node.vfio_device("0000:01:00.0", 12, "vfio0", 0);
  node.msi("0000:01:00.0", 45, "vfio-msix[0](0000:01:00.0)", "0-7");
  node.msi("0000:01:00.0", 46, "vfio-msix[1](0000:01:00.0)", "0-7");
  node.fd(100, 30, "/dev/vfio/12");
  api.play_pod();
  node.send_interrupt(46, "0");
  CHECK(api.good("POST", "/v1/verify").at("interrupts") == 2);
  const json::object sandbox = api.good("GET", "/v1/sandboxes/s1");
  CHECK(text(sandbox.at("interrupts")) == R"({"0000:01:00.0":"4-5"})");
  CHECK(sandbox.at("interrupt_drift") == 1);
  CHECK(text(sandbox.at("devices").at(0).at("interrupts").at(0)) ==
        R"x({"number":45,"name":"vfio-msix[0](0000:01:00.0)","wanted":"4-5","actual":"4-5",)x"
        R"x("managed":true,"drift":false})x");
  const json::object why = api.good("GET", "/v1/explain/s1");
  CHECK(text(why.at("facts"))
            .find("device 0000:01:00.0 of node 0 is passed through, with 2 "
                  "interrupts") != std::string::npos);
  const std::string results = text(why.at("results"));
  CHECK(results.find("interrupts of 0000:01:00.0 are planned on CPUs 4-5") != std::string::npos);
  CHECK(results.find(
            "interrupt 46 (vfio-msix[1](0000:01:00.0)) is routed to CPU 0 instead of CPUs 4-5") !=
        std::string::npos);
  const std::string page = api.call("GET", "/metrics").body;
  for (const char* line :
       {"kata_affinity_interrupts 2\n", "kata_affinity_drifted_interrupts 1\n",
        "kata_affinity_unmanaged_interrupts 0\n", "kata_affinity_interrupt_writes_total 2\n"}) {
    CAPTURE(page, line);
    CHECK(page.find(line) != std::string::npos);
  }
}

TEST_CASE("the node shows who owns each CPU", "[api]") {
  Api api;
  api.play_pod();
  api.good("PUT", "/v1/sandboxes/runc", R"({"pod_name":"shop/db"})");
  api.good("PUT", "/v1/sandboxes/runc/containers/x", R"({"cpus":"7","exclusive":true})");
  const json::object node = api.good("GET", "/v1/node");
  CHECK(node.at("shared_pool") == "0-3,6");
  CHECK(node.at("exclusive") == "4-5,7");
  const json::array& cpus = node.at("cpus").as_array();
  REQUIRE(cpus.size() == 8);
  CHECK(cpus[0].at("shared") == true);
  CHECK(text(cpus[0].at("threads")) == R"({"emulator":1,"iothread":1,"vcpu":1})");
  CHECK(text(cpus[4].at("vcpus")) == R"([{"sandbox":"s1","vcpu":1,"container":"c1"}])");
  CHECK(cpus[7].at("owners").at(0).at("pod_name") == "shop/db");
  CHECK(cpus[7].at("owners").at(0).at("vm") == false);
  CHECK(node.at("topology").at("cpus").as_array().size() == 8);
}

TEST_CASE("metrics equal what was counted", "[api]") {
  Api api;
  api.play_pod();
  api.scene.calls.own[111] = policy::CpuSet{0, 1};
  api.scene.line().check_drift();
  const http::Response page = api.call("GET", "/metrics");
  CHECK(page.status == 200);
  CHECK(page.content_type == "text/plain; version=0.0.4; charset=utf-8");
  for (const char* line :
       {"kata_affinity_sandboxes 1\n", "kata_affinity_threads{role=\"vcpu\"} 3\n",
        "kata_affinity_threads{role=\"vhost\"} 0\n", "# TYPE kata_affinity_writes_total counter\n",
        "kata_affinity_events_total{source=\"api\"} 3\n", "kata_affinity_drift_found_total 1\n",
        "kata_affinity_drift_repaired_total 1\n", "kata_affinity_exclusive_cpus 2\n",
        "kata_affinity_drifted_threads 0\n", "kata_affinity_foreign_cpus 0\n",
        "kata_affinity_errors_total{kind=\"permission\"} 0\n",
        "kata_affinity_guests{state=\"none\"} 1\n",
        "kata_affinity_reaction_seconds_bucket{le=\"+Inf\"} ",
        "kata_affinity_build_info{version=\"0."}) {
    CAPTURE(page.body, line);
    CHECK(page.body.find(line) != std::string::npos);
  }
  CHECK(api.router.handle_metrics({"GET", "/metrics", ""}).status == 200);
  CHECK(api.router.handle_metrics({"GET", "/v1/node", ""}).status == 404);
}

TEST_CASE("ready: every awaited source has reported, or the time for it is up", "[api]") {
  Api api;
  CHECK(api.good("GET", "/readyz").at("status") == "ready");
  api.scene.line().expect(policy::ledger::Source::kNri);
  api.scene.line().expect(policy::ledger::Source::kKubelet);
  CHECK(api.bad("GET", "/readyz").starts_with("503 no thread gets more CPUs yet: waiting for"));
  CHECK(api.router.handle_metrics({"GET", "/readyz", ""}).status == 503);
  CHECK(api.router.handle_metrics({"GET", "/healthz", ""}).status == 200);
  api.scene.line().source_synced(policy::ledger::Source::kNri);
  CHECK(api.call("GET", "/readyz").status == 503);

  SECTION("the last one reports") {
    api.scene.line().source_synced(policy::ledger::Source::kKubelet);
  }
  SECTION("the last one stays silent") { api.scene.line().stop_waiting(); }
  CHECK(api.good("GET", "/readyz").at("status") == "ready");
  CHECK(api.router.handle_metrics({"GET", "/readyz", ""}).status == 200);
}

TEST_CASE("events go to each listener, one per line", "[api]") {
  Api api;
  const http::Response response = api.call("GET", "/v1/events");
  REQUIRE(response.feed == &api.feed);
  std::string received;
  const http::Feed::Subscription listener(*response.feed,
                                          [&](const http::Feed::Line& line) { received += *line; });
  api.router.publish(
      {.sequence = 7,
       .time = std::chrono::system_clock::time_point(std::chrono::milliseconds(1500)),
       .kind = board::NotificationKind::kDrift,
       .sandbox = "s1",
       .text = "moved \"back\""});
  CHECK(received ==
        R"({"sequence":7,"time":"1970-01-01T00:00:01.500Z","kind":"drift","sandbox":"s1",)"
        R"("container":"","reason":"","text":"moved \"back\""})"
        "\n");
}

TEST_CASE("reports of the shim proxy do not count as an operator's") {
  Api api;
  const auto source = [&](const char* of) {
    return text(api.good("GET", "/v1/sandboxes/s1").at(of));
  };
  const std::string pod = R"({"vmm_pid":100,"pod_uid":"u1","proxy_pid":9,"original_cpus":"0-7"})";
  CHECK(api.bad("PUT", "/v1/sandboxes/s1", pod).starts_with("400 "));
  api.good("PUT", "/v1/sandboxes/s1?source=proxy", pod);
  api.good("PUT", "/v1/sandboxes/s1/containers/c1?source=proxy",
           R"({"name":"app","cpus":"4-5","period":100000})");
  CHECK(source("source") == R"("proxy")");
  CHECK(api.good("GET", "/v1/sandboxes/s1").at("containers").at(0).at("source") == "proxy");
  api.scene.line().handle(
      {policy::ledger::Source::kKubelet,
       policy::ledger::KubeletSeen{policy::CpuSet{0, 1},
                                   std::vector<policy::ledger::Claim>{{"u1", "app", {4, 5}}}}});
  CHECK(api.scene.cpus(111) == "4");
  CHECK(api.scene.cpus(112) == "5");
  api.good("DELETE", "/v1/sandboxes/s1/containers/c1?source=proxy");
  api.good("DELETE", "/v1/sandboxes/s1?source=proxy");
  CHECK(api.bad("PUT", "/v1/sandboxes/s1?source=nri", "{}") == R"(400 source: must be "proxy")");
  CHECK(api.bad("PUT", "/v1/sandboxes/s1?id=proxy", "{}") == R"(400 unknown query parameter "id")");
}

TEST_CASE("a CPU that kubelet has assigned is owned before the runtime reports the pod") {
  Api api;
  api.play_pod();
  api.scene.line().handle(
      {policy::ledger::Source::kKubelet,
       policy::ledger::KubeletSeen{
           policy::CpuSet{0, 1},
           std::vector<policy::ledger::Claim>{{"u1", "app", {4, 5}}, {"u2", "db", {6}}}}});
  const json::array cpus = api.good("GET", "/v1/node").at("cpus").as_array();
  CHECK(text(cpus[6].at("owners")) ==
        R"([{"pod":"u2","pod_name":"","container":"db","name":"db","vm":false,"reported":false}])");
  CHECK(cpus[6].at("shared") == false);
  CHECK(cpus[4].at("owners").as_array().size() == 1);
  CHECK(cpus[4].at("owners").at(0).at("pod") == "s1");
}

TEST_CASE("the last 256 drifts are kept, and no other events", "[api]") {
  Api api;
  board::Notification notification{.kind = board::NotificationKind::kSeen, .text = "no drift"};
  api.router.publish(notification);
  notification.kind = board::NotificationKind::kDrift;
  for (std::uint64_t number = 1; number <= 300; ++number) {
    notification.sequence = number;
    api.router.publish(notification);
  }
  const json::array drifts = api.good("GET", "/v1/drifts").at("drifts").as_array();
  REQUIRE(drifts.size() == 256);
  CHECK(drifts.front().at("sequence") == 45);
  CHECK(drifts.back().at("sequence") == 300);
  CHECK(drifts.back().at("kind") == "drift");
}

TEST_CASE("waits include threads that can be read", "[api]") {
  Api api;
  api.play_pod();
  for (const char* tid : {"100", "110", "112", "120"}) {
    std::filesystem::remove(api.scene.node.proc() / "100/task" / tid / "schedstat");
  }
  api.scene.node.schedstat(100, 111, 2'500'000'000);
  CHECK(text(api.good("GET", "/v1/waits")) ==
        R"({"threads":[{"sandbox":"s1","pid":100,"tid":111,"nanoseconds":2500000000}]})");
}

TEST_CASE("the socket for reads answers reads and verify, and refuses everything else", "[api]") {
  Api api;
  api.play_pod();
  const auto on_reads = [&api](const std::string& method, const std::string& target) {
    return api.router.handle_reads({method, target, R"({"cpus":"0-7","vmm_pid":200})"});
  };
  const std::string sandboxes = "/v1/sandboxes", s1 = sandboxes + "/s1", c1 = s1 + "/containers/c1";
  for (const std::string& target :
       {sandboxes, s1, std::string("/v1/explain/s1"), std::string("/v1/explain/cpu/4"),
        std::string("/v1/node"), std::string("/v1/events"), std::string("/v1/drifts"),
        std::string("/v1/waits"), std::string("/metrics"), std::string("/healthz"),
        std::string("/readyz")}) {
    CAPTURE(target);
    const int status = on_reads("GET", target).status;
    CHECK(status == api.call("GET", target).status);
    CHECK(status != 403);
  }
  CHECK(on_reads("POST", "/v1/verify").status == 200);
  CHECK(on_reads("GET", "/v1/nothing").status == 404);

  const std::string before = text(api.good("GET", s1));
  for (const char* method : {"PUT", "DELETE", "POST", "PATCH", "HEAD", "OPTIONS", "get", ""}) {
    for (const std::string& target :
         {sandboxes, s1, sandboxes + "/s2", s1 + "?source=proxy", c1, s1 + "/pins/vcpu/1",
          s1 + "/pins/emulator", std::string("/v1/classes/s1"), std::string("/v1/reconcile"),
          std::string("/v1/reconcile?id=s1"), std::string("/v1/release"),
          std::string("/v1/release?id=s1"), std::string("/v1/verify?id=s1"),
          std::string("/v1/nothing")}) {
      CAPTURE(method, target);
      CHECK(on_reads(method, target).status == 403);
    }
  }
  CHECK(text(api.good("GET", s1)) == before);
  CHECK_FALSE(api.router.handle({"GET", sandboxes + "/s2", ""}).status == 200);
  CHECK(api.scene.cpus(111) == "4");
  CHECK(on_reads("DELETE", s1).body.find("DELETE is refused on this socket") != std::string::npos);
}
