// SPDX-License-Identifier: Apache-2.0
// What the API says of isolation, pins and verdicts.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <utility>

#include "tests/unit/api/scene.hpp"

using namespace ka;
using namespace ka::tests;

namespace {

bool has_reason(const json::object& report, std::string_view reason) {
  return std::ranges::any_of(report.at("findings").as_array(), [&](const json::value& finding) {
    const auto* own = finding.as_object().if_contains("reason");
    return own != nullptr && own->as_string() == reason;
  });
}

/// Of the findings with this reason.
std::set<std::string> remedies(const json::object& report, std::string_view reason) {
  std::set<std::string> found;
  for (const json::value& finding : report.at("findings").as_array()) {
    const auto* own = finding.as_object().if_contains("reason");
    if (own == nullptr || own->as_string() != reason) continue;
    found.emplace(finding.at("remedy").as_string());
  }
  return found;
}

}  // namespace

TEST_CASE("verify re-reads the kernel and names each violation", "[api]") {
  Api api;
  api.play_pod();
  const json::object kept = api.good("POST", "/v1/verify");
  CHECK(kept.at("ok") == true);
  CHECK(kept.at("verdict") == "degraded");  // no agent answers in the guest
  CHECK(text(kept.at("seen")) == R"({"sandboxes":1,"threads":5})");
  CHECK(text(kept.at("known")) == R"({"sandboxes":1,"threads":5})");
  api.scene.calls.own[111] = policy::CpuSet{0, 1};
  const json::object report = api.good("POST", "/v1/verify");
  CHECK(report.at("ok") == false);
  CHECK(report.at("verdict") == "violated");
  REQUIRE_FALSE(report.at("findings").as_array().empty());
  CHECK(report.at("findings").at(0).at("severity") == "violated");
  CHECK(report.at("findings").at(0).at("remedy") == "kata-affinityctl reconcile s1");
  CHECK(report.at("findings").at(0).at("sandbox") == "s1");
  CHECK(report.at("findings").at(0).at("actual") == "0-1");
  CHECK(api.scene.cpus(111) == "0-1");  // nothing was written
}

TEST_CASE("verify and reconcile name the setting by which nothing is placed", "[api]") {
  Api api;
  api.good("PUT", "/v1/sandboxes/s1", R"({"vmm_pid":100})");
  api.good("PUT", "/v1/sandboxes/s1/containers/c", R"({"cpus":"4-5","exclusive":true})");
  line::Options options = tests::at_home();
  std::string reason, remedy, warning;
  SECTION("disabled") {
    options.enable = false;
    reason = "disabled", remedy = "enable = true";
    warning = R"(["enable is false: no thread is placed"])";
  }
  SECTION("disabled, and the sandbox is released") {
    api.good("POST", "/v1/release?id=s1");
    options.enable = false;
    reason = "disabled", remedy = "enable = true";
    warning = R"(["enable is false: no thread is placed"])";
  }
  SECTION("observe") {
    options.observe = true;
    reason = "drift",
    remedy = "mode = \"follow\" (kata-affinityctl setup --profile isolated --yes)";
    warning = R"(["mode is \"observe\": nothing is written"])";
  }
  api.scene.line().configure(options);
  api.scene.calls.own[111] = policy::CpuSet{0, 1};
  CHECK(remedies(api.good("POST", "/v1/verify"), reason) == std::set<std::string>{remedy});
  CHECK(text(api.good("POST", "/v1/reconcile?id=s1").at("warnings")) == warning);
  CHECK(text(api.good("POST", "/v1/reconcile").at("warnings")) == warning);
  CHECK(remedies(api.good("POST", "/v1/verify"), reason) == std::set<std::string>{remedy});
  api.scene.line().configure(tests::at_home());
  CHECK_FALSE(api.good("POST", "/v1/reconcile").contains("warnings"));
  CHECK(remedies(api.good("POST", "/v1/verify"), reason).empty());
}

TEST_CASE("a sandbox whose state is lost is known, not seen, and explains what is held back",
          "[api]") {
  Api api;
  std::ofstream(api.scene.state_dir() / "lost.json") << "{";
  api.scene.line().adopt();
  api.play_pod();
  const auto waits = [&] {
    const std::string results = text(api.good("GET", "/v1/explain/s1").at("results"));
    return results.find("no thread gets more CPUs yet") != std::string::npos;
  };
  const auto extents = [&] {
    const json::object report = api.good("POST", "/v1/verify");
    return std::pair(report.at("known").at("sandboxes").as_int64(),
                     report.at("seen").at("sandboxes").as_int64());
  };
  CHECK(api.good("POST", "/v1/verify").at("verdict") == "unknown");
  CHECK(extents() == std::pair<std::int64_t, std::int64_t>(2, 1));
  CHECK(waits());
  api.good("POST", "/v1/reconcile");
  CHECK(extents() == std::pair<std::int64_t, std::int64_t>(1, 1));
  CHECK_FALSE(waits());
}

TEST_CASE("among threads of one name verify reports the mask of the misplaced one", "[api]") {
  Api api;
  api.scene.node.thread(100, 105, "rcu");
  api.play_pod();
  api.scene.calls.own[105] = policy::CpuSet{0, 4};
  bool reported = false;
  const json::object report = api.good("POST", "/v1/verify");
  for (const auto& finding : report.at("findings").as_array()) {
    reported = reported || (finding.at("invariant") == "I4" && finding.at("actual") == "0,4");
  }
  CHECK(reported);
}

TEST_CASE("a thread pinned by hand stays pinned until the pin is removed", "[api]") {
  Api api;
  api.play_pod();
  CHECK(api.scene.cpus(111) == "4");
  api.good("PUT", "/v1/sandboxes/s1/pins/vcpu/1", R"({"cpus":"6-7","force":true})");
  api.good("PUT", "/v1/sandboxes/s1/pins/emulator", R"({"cpus":"3"})");
  CHECK(api.scene.cpus(111) == "6-7");
  CHECK(api.scene.cpus(100) == "3");

  const json::object s1 = api.good("GET", "/v1/sandboxes/s1");
  const json::array& pins = s1.at("overrides").as_array();
  REQUIRE(pins.size() == 2);
  CHECK(pins[0].at("thread") == "vCPU 1");
  CHECK(pins[0].at("cpus") == "6-7");
  CHECK(pins[1].at("thread") == "emulator");
  CHECK(pins[1].at("cpus") == "3");
  for (const json::value& thread : s1.at("threads").as_array()) {
    const auto tid = thread.at("tid").as_int64();
    CHECK(thread.at("by_hand").as_bool() == (tid == 111 || tid == 100));
  }
  CHECK(text(api.good("GET", "/v1/explain/s1").at("facts")).find("vCPU 1 is pinned to CPUs 6-7") !=
        std::string::npos);
  CHECK(has_reason(api.good("POST", "/v1/verify"), "pinned-by-hand"));

  api.scene.start();  // it is known after a restart
  api.scene.line().adopt();
  CHECK(api.scene.cpus(111) == "6-7");
}

TEST_CASE("manual pins are removed one by one", "[api]") {
  Api api;
  api.play_pod();
  const std::string before = api.scene.cpus(110) + ' ' + api.scene.cpus(111) + ' ' +
                             api.scene.cpus(112) + ' ' + api.scene.cpus(101);
  for (const char* thread : {"vcpu/1", "iothread/io1"}) {
    const std::string target = std::string("/v1/sandboxes/s1/pins/") + thread;
    api.good("PUT", target, R"({"cpus":"6","force":true})");
    api.good("PUT", target, R"({"cpus":"6-7","force":true})");
    api.good("DELETE", target);
    CHECK(api.scene.cpus(110) + ' ' + api.scene.cpus(111) + ' ' + api.scene.cpus(112) + ' ' +
              api.scene.cpus(101) ==
          before);
    CHECK(api.bad("DELETE", target).ends_with(" of \"s1\" has no manual pin"));
  }
}

TEST_CASE("an impossible manual pin is rejected and changes nothing", "[api]") {
  Api api;
  api.play_pod();
  api.good("PUT", "/v1/sandboxes/runc", R"({})");
  api.good("PUT", "/v1/sandboxes/runc/containers/c", R"({"cpus":"2","exclusive":true})");
  const auto put = [&api](const std::string& thread, const std::string& cpus) {
    return api.bad("PUT", "/v1/sandboxes/s1/pins/" + thread, R"({"cpus":")" + cpus + "\"}");
  };
  api.scene.calls.writes.clear();
  CHECK(put("vcpu/9", "1") == "404 sandbox \"s1\" has no vCPU 9");
  CHECK(put("vcpu/x", "1") == "400 \"x\" is not a vCPU index");
  CHECK(put("vcpu", "1") == "400 \"\" is not a vCPU index");
  CHECK(put("iothread/io7", "1") == "404 sandbox \"s1\" has no iothread io7");
  CHECK(put("vhost", "1") == "404 sandbox \"s1\" has no vhost");
  CHECK(put("shim", "1").starts_with("404 \"shim\" is not one of"));
  CHECK(put("emulator/1", "1") == "400 emulator threads cannot be pinned one by one");
  CHECK(put("emulator", "2-3") == "409 cpus: 2 is exclusive to another pod");
  CHECK(put("emulator", "40") == "400 cpus: this machine has no CPU 40 (it has 0-7)");
  CHECK(put("emulator", "") == "400 cpus: must not be empty");
  CHECK(put("emulator", "1-").starts_with("400 cpus: "));
  CHECK(api.bad("PUT", "/v1/sandboxes/s1/pins/emulator", R"({"cpu":"1"})") == "400 cpus: missing");
  CHECK(api.bad("PUT", "/v1/sandboxes/none/pins/emulator", R"({"cpus":"1"})").starts_with("404 "));
  CHECK(api.bad("PUT", "/v1/sandboxes/runc/pins/emulator", R"({"cpus":"1"})") ==
        "400 \"runc\" is not a VM sandbox: it has no threads to place");
  CHECK(api.scene.calls.writes.empty());
  CHECK(text(api.good("GET", "/v1/sandboxes/s1").at("overrides")) == "[]");
}

TEST_CASE("a pin that takes a dedicated vCPU's CPU requires force, and is a finding meanwhile",
          "[api]") {
  Api api;
  api.play_pod();
  using Row = std::pair<const char*, const char*>;
  for (const auto& [target, body] :
       {Row{"emulator", R"({"cpus":"4"})"}, Row{"iothread/io1", R"({"cpus":"0,5"})"},
        Row{"vcpu/0", R"({"cpus":"4"})"}, Row{"vcpu/1", R"({"cpus":"0-1"})"}}) {
    const std::string path = std::string("/v1/sandboxes/s1/pins/") + target;
    api.scene.calls.writes.clear();
    CHECK(api.bad("PUT", path, body)
              .ends_with("belongs to a dedicated vCPU, and its container would lose isolation "
                         "(--force overrides)"));
    CHECK(api.scene.calls.writes.empty());
    json::object forced = json::parse(body).as_object();
    forced["force"] = true;
    api.good("PUT", path, json::serialize(forced));
    const json::object report = api.good("POST", "/v1/verify");
    CHECK(report.at("verdict") == "degraded");
    CHECK(has_reason(report, "pinned-by-hand"));
    api.good("DELETE", path);
    CHECK_FALSE(has_reason(api.good("POST", "/v1/verify"), "pinned-by-hand"));
  }
}

TEST_CASE("a pin names its client and its time, and expires", "[api]") {
  Api api;
  api.play_pod();
  CHECK(api.bad("PUT", "/v1/sandboxes/s1/pins/emulator", R"({"cpus":"1","for":0})") ==
        "400 for: must be 1 to 31536000 seconds");
  CHECK(api.bad("PUT", "/v1/sandboxes/s1/pins/emulator", R"({"cpus":"1","for":31536001})") ==
        "400 for: must be 1 to 31536000 seconds");
  const auto put = api.router.handle(
      {"PUT", "/v1/sandboxes/s1/pins/emulator", R"({"cpus":"1","for":600})", http::Peer{1000, 71}});
  REQUIRE(put.status == 200);
  const json::object s1 = api.good("GET", "/v1/sandboxes/s1");
  const json::value& pin = s1.at("overrides").at(0);
  CHECK(pin.at("uid") == 1000);
  CHECK(pin.at("pid") == 71);
  CHECK(pin.at("since") == "1970-01-01T01:00:00.000Z");
  CHECK(pin.at("expires_in").as_int64() > 590);

  api.scene.start();  // the end is known after a restart
  api.scene.line().adopt();
  std::string ended;
  const auto subscription = api.scene.board().feed().subscribe(
      board::NotificationKind::kOverrideChanged,
      [&](const board::Notification& one) { ended = one.text + " [" + one.reason + ']'; });
  api.scene.clock.advance(std::chrono::seconds(500));
  api.scene.requests().end_pins();
  CHECK(api.scene.cpus(100) == "1");
  const auto end = api.scene.requests().next_pin_end();
  REQUIRE(end);
  api.scene.clock.advance(*end - api.scene.clock.now());
  api.scene.requests().end_pins();
  CHECK(api.scene.cpus(100) != "1");
  CHECK(ended.ends_with("returned to the plan: the time of its pin is up [expired]"));
  CHECK_FALSE(api.scene.requests().next_pin_end());
  CHECK(text(json::parse(
                 api::Router(api.scene.line(), api.scene.requests(), api.scene.verifier(), api.feed)
                     .handle({"GET", "/v1/sandboxes/s1", ""})
                     .body)
                 .at("overrides")) == "[]");
}

TEST_CASE("isolation is the same in status, node, explain, metrics and events", "[api]") {
  Api api;
  line::Options options;
  options.settings.guest.agent = policy::plan::GuestAgent::kNone;
  api.scene.line().configure(options);
  api.play_pod();
  const auto container = [&] {
    return api.good("GET", "/v1/sandboxes/s1").at("containers").at(0).as_object();
  };
  const auto has = [&](const std::string& metric) {
    return api.call("GET", "/metrics").body.find(metric) != std::string::npos;
  };
  CHECK(container().at("isolated") == true);
  CHECK(api.good("GET", "/v1/sandboxes/s1").at("containers").at(1).at("isolated").is_null());
  CHECK(has("kata_affinity_containers_isolated 1\n"));
  CHECK(has("kata_affinity_containers_not_isolated{reason=\"pinned-by-hand\"} 0\n"));
  CHECK(std::ranges::count(api.scene.notified, "container-isolated") == 1);
  CHECK(has_reason(api.good("POST", "/v1/verify"), "guest-none"));

  api.scene.notified.clear();
  api.good("PUT", "/v1/sandboxes/s1/pins/emulator", R"({"cpus":"4","force":true})");
  api.good("POST", "/v1/reconcile");
  CHECK(container().at("isolated") == false);
  CHECK(container().at("obstacles").at(0).at("reason") == "pinned-by-hand");
  CHECK(container().at("obstacles").at(0).at("remedy") ==
        "kata-affinityctl emulatorpin s1 --remove");
  CHECK(has("kata_affinity_containers_isolated 0\n"));
  CHECK(has("kata_affinity_containers_not_isolated{reason=\"pinned-by-hand\"} 1\n"));
  CHECK(text(api.good("GET", "/v1/node").at("cpus").at(4).at("owners"))
            .find(R"("isolated":false,"obstacles":"pinned-by-hand")") != std::string::npos);
  CHECK(text(api.good("GET", "/v1/explain/s1").at("results"))
            .find("container c1 (app) is not isolated on CPUs 4-5: pinned manually to CPU 4: "
                  "emulator") != std::string::npos);
  CHECK(std::ranges::count(api.scene.notified, "container-not-isolated") == 1);
}

TEST_CASE("the time that vCPUs waited is counted by container and never falls", "[api]") {
  Api api;
  api.play_pod();
  const auto waited = [&](const std::string& container) {
    const std::string text = api.call("GET", "/metrics").body;
    const std::string series =
        "kata_affinity_vcpu_wait_seconds_total{pod=\"shop/cart\",container=\"" + container + "\"} ";
    const std::size_t found = text.find(series);
    return found == std::string::npos ? -1.0 : std::stod(text.substr(found + series.size()));
  };
  api.scene.node.schedstat(100, 111, 2'000'000'000);  // vCPUs 1 and 2 serve the container
  api.scene.node.schedstat(100, 112, 500'000'000);
  api.scene.node.schedstat(100, 110, 250'000'000);
  CHECK(waited("app") == 2.5);
  CHECK(waited("") == 0.25);
  CHECK(waited("app") == 2.5);  // asking adds nothing
  api.scene.node.schedstat(100, 111, 3'000'000'000);
  CHECK(waited("app") == 3.5);

  api.scene.node.end_thread(100, 112);
  std::filesystem::remove_all(api.scene.node.debugfs() / "kvm/100-9/vcpu2");
  api.good("POST", "/v1/reconcile");
  CHECK(waited("app") == 3.5);
  std::filesystem::remove(api.scene.node.proc() / "100/task/111/schedstat");  // not to be read now
  CHECK(waited("app") == 3.5);
  api.scene.node.schedstat(100, 111, 3'500'000'000);
  CHECK(waited("app") == 4.0);
  api.good("DELETE", "/v1/sandboxes/s1");
  CHECK(waited("app") == -1);
}
