// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/kata/kata_watch.hpp"

#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <map>
#include <optional>
#include <set>

#include "shim-ext/kata/persist.hpp"
#include "tests/catch.hpp"
#include "tests/failing_inotify.hpp"
#include "tests/run_loop.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text_log.hpp"

using namespace ka;
using policy::CpuSet;
using Lines = std::vector<std::string>;

namespace {

std::string container(const std::string& id, const std::string& cpus) {
  return R"({"ID":")" + id + R"(","Annotations":{"io.kubernetes.cri.container-name":"app"},)" +
         R"("Resources":{"cpu":{"cpus":")" + cpus +
         R"(","mems":"1","quota":200000,"period":100000}}})";
}

/// As Go's encoder writes it, with keys that nobody asks for.
std::string persist(int pid, const std::string& containers) {
  return R"({"PersistVersion":2,"State":"running","HypervisorState":{"Pid":)" +
         std::to_string(pid) + R"(,"Type":"qemu"},"Config":{"HypervisorType":"qemu",)" +
         R"("ContainerConfigs":[{"ID":"s1","Annotations":{"io.kubernetes.cri.sandbox-uid":"u1",)" +
         R"("io.kubernetes.cri.sandbox-name":"cart","io.kubernetes.cri.sandbox-namespace":"shop"},)" +
         R"("Resources":{"cpu":{"cpus":"","mems":""}}})" +
         (containers.empty() ? "" : "," + containers) + "]}}\n";
}

std::string words(const policy::ledger::Event& event) {
  const std::string by = std::string(policy::ledger::source_name(event.source)) + ": ";
  if (const auto* pod = std::get_if<policy::ledger::PodSeen>(&event.body)) {
    return by + pod->id + " vm " + std::to_string(pod->vmm ? pod->vmm->pid : 0);
  }
  if (const auto* seen = std::get_if<policy::ledger::ContainerSeen>(&event.body)) {
    return by + seen->id + ' ' + policy::format_list(seen->spec.cpus.value_or(CpuSet{}));
  }
  if (const auto* gone = std::get_if<policy::ledger::ContainerGone>(&event.body)) {
    return by + "gone " + gone->container;
  }
  if (const auto* gone = std::get_if<policy::ledger::PodGone>(&event.body))
    return by + "gone " + gone->id;
  return "?";
}

policy::ProcessId process(int pid) { return {pid, 1}; }

struct Scene {
  Scene()
      : watch(io, clock, {dir.path() / "vc/sbs", dir.path() / "kata", dir.path() / "tasks"},
              {.report =
                   [this](const std::vector<policy::ledger::Event>& events) {
                     ++reports;
                     for (const auto& event : events) lines.push_back(words(event));
                   },
               .starting = [this](const auto& event) { lines.push_back("born " + words(event)); },
               .find_named = [this](const auto& named) -> base::Result<policy::ProcessId> {
                 if (vmms.contains(named.pid)) return process(named.pid);
                 return base::fail(vmm_trouble, "process is no VMM");
               },
               .shim_by_bundle = [this](const auto&, const std::string&) { return quick_shim; },
               .find_shims =
                   [this] {
                     ++walks;
                     return shims;
                   },
               .vmm_of_shim = [this](const auto& shim) { return vmm_of(shim); },
               .has_vmm = [this](const std::string& id) { return running.contains(id); }},
              log) {
    watch.refresh();
  }

  Lines drain() {
    tests::run_for(io, clock, std::chrono::milliseconds(150));
    return std::exchange(lines, {});
  }

  /// What is missed of the Go runtime's sandboxes once Kata would have written all of it.
  std::string missed() {
    tests::run_for(io, clock, kata::KataWatch::kMissedAfter, std::chrono::milliseconds(50));
    watch.refresh();
    return watch.extent(false).missed;
  }

  base::Result<policy::ProcessId> vmm_of(const policy::ProcessId& shim) const {
    const auto found = vmm_by_shim.find(shim.pid);
    if (found == vmm_by_shim.end()) return base::fail(shim_trouble, "none is seen");
    return process(found->second);
  }

  tests::TempDir dir;
  std::string log_lines;
  log::Log log = tests::text_log(log::Level::kDebug, log_lines);
  boost::asio::io_context io;
  tests::TestClock clock;
  std::set<int> vmms{100};
  std::map<std::string, policy::ProcessId> shims;
  std::optional<policy::ProcessId> quick_shim;
  std::map<int, int> vmm_by_shim;
  std::set<std::string> running;                          ///< sandboxes
  base::ErrorCode shim_trouble = base::ErrorCode::kGone;  ///< of a shim without a VMM
  base::ErrorCode vmm_trouble = base::ErrorCode::kGone;   ///< of a process that is no VMM
  int walks = 0;                                          ///< over the node, to find shims
  int reports = 0;
  Lines lines;
  kata::KataWatch watch;
};

}  // namespace

TEST_CASE("persist.json: the sandbox, its VMM and its containers, without its own") {
  const auto sandbox = kata::parse_persist(persist(100, container("c1", "2-3")), "s1");
  REQUIRE(sandbox);
  CHECK(sandbox->pod.pod_uid == "u1");
  CHECK(sandbox->pod.pod_name == "shop/cart");
  CHECK(sandbox->vmm_pid == 100);
  REQUIRE(sandbox->containers.size() == 1);
  const policy::ledger::ContainerSeen& seen = sandbox->containers[0];
  CHECK(seen.sandbox == "s1");
  CHECK(seen.id == "c1");
  CHECK(seen.spec.name == "app");
  CHECK(seen.spec.cpus == CpuSet{2, 3});
  CHECK(seen.spec.mems == policy::NodeSet{1});
  CHECK(seen.spec.quota == 200000);
  CHECK(seen.spec.period == 100000);
  CHECK_FALSE(seen.spec.exited);  // the file does not have it
}

TEST_CASE("persist.json: every malformed part is rejected, also a malformed list") {
  const std::string whole = persist(100, container("c1", "2-3"));
  for (std::size_t size = 0; size + 2 < whole.size(); ++size) {
    CHECK_FALSE(kata::parse_persist(whole.substr(0, size), "s1"));
  }
  CHECK_FALSE(kata::parse_persist(persist(100, container("c1", "3-2")), "s1"));
  CHECK(kata::parse_persist("{}", "s1"));
}

TEST_CASE("persist.json: what decides about CPUs is never read as nothing") {
  const auto error_of = [](std::string text, std::string_view good, std::string_view bad) {
    text.replace(text.find(good), good.size(), bad);
    const auto sandbox = kata::parse_persist(text, "s1");
    return sandbox ? "" : sandbox.error().message;
  };
  const std::string whole = persist(100, container("c1", "2-3"));
  CHECK(error_of(whole, R"("2-3")", "[2,3]") ==
        "persist.json: container c1: /cpus: must be a string");
  CHECK(error_of(whole, "200000", R"("200000")") ==
        "persist.json: container c1: /quota: must be a whole number");
  CHECK(error_of(whole, R"("Pid":100)", R"("Pid":"100")") ==
        "persist.json: /HypervisorState/Pid: must be a whole number");
  CHECK(error_of(whole, R"("period":)", R"("quota":)").find("duplicate key") != std::string::npos);
}

TEST_CASE("persist.json: a list of CPUs may be long") {
  CpuSet cpus;
  for (int cpu = 0; cpu < 1024; cpu += 2) cpus.add(cpu);
  const auto sandbox =
      kata::parse_persist(persist(100, container("c1", policy::format_list(cpus))), "s1");
  REQUIRE(sandbox);
  CHECK(sandbox->containers.at(0).spec.cpus == cpus);
}

TEST_CASE("a sandbox whose directory is gone ends with its VMM") {
  Scene scene;
  scene.dir.write("vc/sbs/s1/persist.json", persist(100, container("c1", "2")));
  REQUIRE(scene.drain().size() == 2);
  scene.running = {"s1"};
  std::filesystem::remove_all(scene.dir.path() / "vc/sbs/s1");
  CHECK(scene.drain() == Lines{});
  CHECK(scene.missed() ==
        "1 of 1 sandbox of Kata's Go runtime not read: s1 (its directory is gone, and its VMM "
        "runs)");
  scene.running.clear();
  scene.watch.refresh();
  CHECK(scene.drain() == Lines{"persist.json: gone s1"});
  CHECK(scene.watch.extent(false).missed.empty());
}

TEST_CASE("the Go runtime's sandboxes are followed: created, half written, rewritten, ended") {
  Scene scene;
  CHECK(scene.drain().empty());
  const std::string whole = persist(100, container("c1", "2-3"));
  scene.dir.write("vc/sbs/s1/persist.json", whole.substr(0, 200));
  CHECK(scene.drain().empty());
  scene.dir.write("vc/sbs/s1/persist.json", whole);
  CHECK(scene.drain() == Lines{"persist.json: s1 vm 100", "persist.json: c1 2-3"});
  CHECK(scene.watch.extent(false) == kata::KataWatch::Extent{1, ""});
  scene.watch.refresh();
  CHECK(scene.drain().empty());
  scene.dir.write("vc/sbs/s1/persist.json", persist(100, container("c2", "4")));
  CHECK(scene.drain() ==
        Lines{"persist.json: s1 vm 100", "persist.json: c2 4", "persist.json: gone c1"});
  std::filesystem::remove_all(scene.dir.path() / "vc/sbs/s1");
  CHECK(scene.drain() == Lines{"persist.json: gone s1"});
}

TEST_CASE("persist.json of the largest size is used, one of a byte more is not") {
  Scene scene;
  const auto write = [&scene](const std::string& cpus, std::size_t size) {
    std::string text = persist(100, container("c1", cpus));
    text.resize(size, ' ');
    scene.dir.write("vc/sbs/s1/persist.json", text);
  };
  write("2-3", kata::kMaxPersist + 1);
  CHECK(scene.drain().empty());
  write("4", kata::kMaxPersist);
  CHECK(scene.drain() == Lines{"persist.json: s1 vm 100", "persist.json: c1 4"});
  write("5", kata::kMaxPersist + 1);
  CHECK(scene.drain().empty());
}

TEST_CASE("a VMM that is not there yet is waited for; a pid that is not a VMM is ignored") {
  Scene scene;
  scene.vmms.clear();
  scene.dir.write("vc/sbs/s1/persist.json", persist(100, ""));
  CHECK(scene.drain().empty());
  scene.vmms.insert(100);
  CHECK(scene.drain() == Lines{"persist.json: s1 vm 100"});
}

TEST_CASE("a sandbox of runtime-rs is known once its VMM is found") {
  Scene scene;
  scene.shims["s2"] = process(20);
  scene.dir.write("kata/s2/state.json", "{}");
  CHECK(scene.drain() == Lines{"born cgroup: s2 vm 20"});
  scene.vmm_by_shim[20] = 200;
  CHECK(scene.drain() == Lines{"cgroup: s2 vm 200"});
  CHECK(scene.watch.extent(true) == kata::KataWatch::Extent{1, ""});
  CHECK(scene.drain().empty());
  std::filesystem::remove_all(scene.dir.path() / "kata/s2");
  CHECK(scene.drain() == Lines{"cgroup: gone s2"});
}

TEST_CASE(
    "a sandbox of runtime-rs whose shim's processes cannot be read is missed until they can") {
  Scene scene;
  scene.shims["s2"] = process(20);
  scene.shim_trouble = base::ErrorCode::kPermission;
  scene.dir.write("kata/s2/state.json", "{}");
  CHECK(scene.missed().empty());  // of the other runtime
  CHECK_FALSE(scene.watch.is_complete());
  CHECK(scene.watch.extent(true).missed ==
        "1 of 1 sandbox of Kata's runtime-rs not read: s2 (none is seen)");
  scene.vmm_by_shim[20] = 200;
  scene.watch.refresh();
  CHECK(scene.watch.is_complete());
  CHECK(scene.watch.extent(true) == kata::KataWatch::Extent{1, ""});
}

TEST_CASE("while idle nothing is reported; afterwards everything is reported again") {
  Scene scene;
  scene.dir.write("vc/sbs/s1/persist.json", persist(100, container("c1", "2-3")));
  CHECK(scene.drain().size() == 2);
  scene.watch.set_paused(true);
  scene.dir.write("vc/sbs/s1/persist.json", persist(100, container("c1", "4")));
  CHECK(scene.drain().empty());
  scene.watch.set_paused(false);
  CHECK(scene.drain() == Lines{"persist.json: s1 vm 100", "persist.json: c1 4"});
}

TEST_CASE("until its VMM exists a sandbox's shim stands for it, and is searched once") {
  Scene scene;
  scene.shims["s1"] = process(10);
  std::filesystem::create_directories(scene.dir.path() / "vc/sbs/s1");
  CHECK(scene.drain() == Lines{"born persist.json: s1 vm 10"});
  scene.drain();
  CHECK(scene.walks == 1);
  scene.dir.write("vc/sbs/s1/persist.json", persist(100, ""));
  CHECK(scene.drain() == Lines{"persist.json: s1 vm 100"});
  CHECK(scene.walks == 1);
}

TEST_CASE("a shim with a pid file is found without scanning the node") {
  Scene scene;
  scene.quick_shim = process(10);
  std::filesystem::create_directories(scene.dir.path() / "kata/s2");
  CHECK(scene.drain() == Lines{"born cgroup: s2 vm 10"});
  CHECK(scene.walks == 0);
}

TEST_CASE("a sandbox that has its VMM when first seen is not a birth") {
  Scene scene;
  scene.shims["s2"] = process(20);
  scene.vmm_by_shim[20] = 200;
  std::filesystem::create_directories(scene.dir.path() / "kata/s2");
  CHECK(scene.drain() == Lines{"cgroup: s2 vm 200"});
}

TEST_CASE("births are reported also while another source reports containers") {
  Scene scene;
  scene.watch.set_paused(true);
  scene.shims["s1"] = process(10);
  scene.dir.write("vc/sbs/s1/persist.json", persist(100, container("c1", "2-3")));
  CHECK(scene.drain() == Lines{"born persist.json: s1 vm 10"});
}

TEST_CASE("a persist.json that stays unreadable is missed, once, until it is read") {
  Scene scene;
  scene.dir.write("vc/sbs/s0/persist.json", persist(100, ""));
  SECTION("a loop of links") { scene.dir.link("vc/sbs/s1/persist.json", "persist.json"); }
  SECTION("half of it") { scene.dir.write("vc/sbs/s1/persist.json", "{\"State\":"); }
  SECTION("its folder is the loop") { scene.dir.link("vc/sbs/s1", "s1"); }
  SECTION("it cannot be seen whether its process is a VMM") {
    scene.vmm_trouble = base::ErrorCode::kPermission;
    scene.dir.write("vc/sbs/s1/persist.json", persist(101, ""));
  }
  tests::run_for(scene.io, scene.clock, kata::KataWatch::kMissedAfter / 2);
  CHECK(scene.watch.extent(false).missed.empty());
  CHECK(scene.missed().starts_with("1 of 2 sandboxes of Kata's Go runtime not read: s1 ("));
  const int reports = scene.reports;
  scene.missed();
  CHECK(scene.reports == reports);
  CHECK_FALSE(scene.watch.is_complete());
  std::filesystem::remove_all(scene.dir.path() / "vc/sbs/s1");
  scene.dir.write("vc/sbs/s1/persist.json", persist(100, ""));
  scene.drain();
  CHECK(scene.watch.extent(false) == kata::KataWatch::Extent{2, ""});
  CHECK(scene.watch.is_complete());
}

TEST_CASE("of many sandboxes that are missed three are named") {
  Scene scene;
  for (const char* id : {"s1", "s2", "s3", "s4"}) {
    scene.dir.write("vc/sbs/" + std::string(id) + "/persist.json", "{");
  }
  const std::string missed = scene.missed();
  CHECK(missed.starts_with("4 of 4 sandboxes"));
  CHECK(missed.find("s3 (") != std::string::npos);
  CHECK(missed.find("s4") == std::string::npos);
}

TEST_CASE("a sandbox without a persist.json is missed if its VMM runs") {
  Scene scene;
  scene.shims["s1"] = process(10);
  std::filesystem::create_directories(scene.dir.path() / "vc/sbs/s1");
  CHECK(scene.missed().empty());
  scene.vmm_by_shim[10] = 100;
  CHECK(scene.missed() ==
        "1 of 1 sandbox of Kata's Go runtime not read: s1 (there is no persist.json)");
}

TEST_CASE("what a sandbox has left behind is not missed") {
  Scene scene;
  scene.vmms.clear();
  scene.dir.write("vc/sbs/s1/persist.json", persist(100, ""));
  std::filesystem::create_directories(scene.dir.path() / "vc/sbs/s2");
  std::filesystem::create_directories(scene.dir.path() / "kata/s3");
  CHECK(scene.missed().empty());
  CHECK(scene.watch.extent(true).missed.empty());
}

TEST_CASE("a directory that cannot be listed is missed, and is reported once") {
  Scene scene;
  scene.dir.link("vc/sbs", "sbs");
  scene.watch.refresh();
  CHECK(scene.watch.extent(false).missed == "sandboxes of Kata's Go runtime cannot be listed: " +
                                                (scene.dir.path() / "vc/sbs").string() +
                                                ": Too many levels of symbolic links");
  CHECK(scene.watch.extent(true).missed.empty());
  CHECK(scene.reports == 1);
  scene.watch.refresh();
  CHECK(scene.reports == 1);
  CHECK(scene.log_lines.empty());
  std::filesystem::remove(scene.dir.path() / "vc/sbs");
  scene.watch.refresh();
  CHECK(scene.watch.extent(false).missed.empty());
  CHECK(scene.reports == 2);
}

TEST_CASE("without inotify sandboxes are followed at each refresh, until there is one again") {
  Scene scene;
  tests::InotifyFails fails({.watch = ENOSPC});
  scene.dir.write("vc/sbs/s1/persist.json", persist(100, container("c1", "2-3")));
  scene.watch.refresh();
  CHECK(scene.watch.late());
  CHECK(scene.drain() == Lines{"persist.json: s1 vm 100", "persist.json: c1 2-3"});

  fails.end();
  scene.watch.refresh();
  CHECK_FALSE(scene.watch.late());
  scene.dir.write("vc/sbs/s1/persist.json", persist(100, container("c2", "4")));
  CHECK(scene.drain() ==
        Lines{"persist.json: s1 vm 100", "persist.json: c2 4", "persist.json: gone c1"});
}
