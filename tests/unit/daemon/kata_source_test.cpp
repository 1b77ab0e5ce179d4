// SPDX-License-Identifier: Apache-2.0
// Kata's folders, the line and the masks that come of it, without a container runtime.
#include "shim-ext/kata/kata_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <fstream>
#include <set>
#include <vector>

#include "affinity/daemon/source_node.hpp"
#include "affinity/line/source_findings.hpp"
#include "affinity/state/store.hpp"
#include "tests/catch.hpp"
#include "tests/run_loop.hpp"
#include "tests/text_log.hpp"
#include "tests/unit/line/scene.hpp"

using namespace ka;
using policy::CpuSet;
using source::Notice;
using Runtime = kata::KataSource::Runtime;

namespace {

constexpr int kShim = 100, kVmm = 200;
constexpr const char* kUid = "0a1b2c3d-0000-4000-8000-00000000000f";

struct Scene : tests::LineScene {
  explicit Scene(Runtime runtime = Runtime::kReports)
      : source(io, clock, source_node,
               {.proc = node.proc(),
                .debugfs = node.debugfs(),
                .cgroup = node.cgroup(),
                .run = dir.path()},
               folders(), runtime, log) {
    source.refresh();
  }

  kata::KataWatch::Folders folders() const {
    return {dir.path() / "vc/sbs", dir.path() / "kata", dir.path() / "tasks"};
  }

  /// kubelet gives `cpus` to a container of another pod, or of this one.
  void admit(const std::string& uid, const CpuSet& cpus) {
    line().handle({policy::ledger::Source::kKubelet,
                   policy::ledger::KubeletSeen{machine - cpus, {{{uid, "app", cpus}}}}});
  }

  void start_shim() const {
    node.process(kShim, 1, "containerd-shim", "/usr/bin/containerd-shim-kata-v2");
    node.arguments(kShim, {"/usr/bin/containerd-shim-kata-v2", "-id", "s1"});
    node.in_cgroup(kShim, "system.slice/containerd.service", policy::format_list(machine));
  }

  /// The shim's child has the shim's mask.
  void start_vmm() {
    boot_vm(kVmm, 3);
    node.thread(kVmm, kVmm, "qemu-system-x86", kShim);
    node.children(kShim, std::to_string(kVmm));
    node.in_cgroup(kVmm, "kubepods/pod" + std::string(kUid) + "/s1", policy::format_list(machine));
    if (const auto mask = calls.own.find(kShim); mask != calls.own.end()) {
      for (const int tid : {kVmm, kVmm + 1, kVmm + 10, kVmm + 11, kVmm + 12}) {
        calls.own[tid] = mask->second;
      }
    }
  }

  void write_persist(const CpuSet& cpus) {
    dir.write("vc/sbs/s1/persist.json",
              R"({"HypervisorState":{"Pid":200},"Config":{"ContainerConfigs":[)"
              R"({"ID":"s1","Annotations":{"io.kubernetes.cri.sandbox-uid":")" +
                  std::string(kUid) +
                  R"("}},{"ID":"c1","Annotations":{"io.kubernetes.cri.container-name":"app"},)"
                  R"("Resources":{"cpu":{"cpus":")" +
                  policy::format_list(cpus) + R"("}}}]}})");
    set_written(clock.wall().time_since_epoch());
  }

  /// The test's clock is not the one that files have.
  void set_written(std::chrono::nanoseconds since_epoch) const {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
    const timespec at{seconds.count(), (since_epoch - seconds).count()};
    const timespec times[]{at, at};
    const auto file = dir.path() / "vc/sbs/s1/persist.json";
    REQUIRE(::utimensat(AT_FDCWD, file.c_str(), times, 0) == 0);
  }

  /// What is known of persist.json's VMM, in ticks of 10 ms from the start of the process to the
  /// moment that the file's time names.
  bool finds_vmm(int ticks, const std::vector<std::string>& arguments = {}) {
    boot_vm(kVmm, 3);
    if (!arguments.empty()) node.arguments(kVmm, arguments);
    const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(clock.since_boot());
    node.thread(kVmm, kVmm, "qemu-system-x86", 1, static_cast<int>(now.count() / 10) - 1000);
    write_persist(CpuSet{2, 3});
    set_written(clock.wall().time_since_epoch() + std::chrono::milliseconds(10 * (ticks - 1000)));
    source.refresh();
    return line().node().ledger().find("s1") != nullptr;
  }

  void write_mask(const CpuSet& cpus) const {
    std::ofstream(node.cgroup() / "kubepods" / ("pod" + std::string(kUid)) / "s1/cpuset.cpus")
        << policy::format_list(cpus) << '\n';
  }

  /// NRI tells of a container in the sandbox.
  void by_runtime(const CpuSet& cpus) {
    policy::ContainerFacts facts;
    facts.id = "c1";
    facts.cpus = cpus;
    line().handle({policy::ledger::Source::kNri,
                   policy::ledger::PodSeen{.id = "s1", .vmm = tests::process_id(kVmm)}});
    line().handle({policy::ledger::Source::kNri, policy::ledger::whole_report("s1", facts)});
  }

  /// Longer than the pauses between two tries.
  void run_ready() { tests::run_for(io, clock, std::chrono::milliseconds(150)); }

  std::string text(policy::ledger::Source which) { return board().sources().at(which).text; }

  tests::TempDir dir;
  log::Log log = tests::text_log(log::Level::kWarning, log_lines);
  boost::asio::io_context io;
  daemon::SourceNode source_node{line(), board(), clock};
  kata::KataSource source;
};

}  // namespace

TEST_CASE("a shim leaves others' CPUs when its sandbox's directory appears, and its VMM too") {
  Scene scene;
  scene.admit("other", CpuSet{4, 5});
  scene.start_shim();
  std::filesystem::create_directories(scene.dir.path() / "vc/sbs/s1");
  scene.run_ready();
  CHECK(scene.cpus(kShim) == "0-3,6-7");

  scene.start_vmm();
  scene.write_persist(CpuSet{2, 3});
  scene.admit(kUid, CpuSet{2, 3});
  scene.run_ready();
  const std::set<std::string> vcpus{scene.cpus(kVmm + 10), scene.cpus(kVmm + 11),
                                    scene.cpus(kVmm + 12)};
  CHECK(vcpus == std::set<std::string>{"2", "3"});
  CHECK(scene.text(policy::ledger::Source::kPersist).starts_with("1 sandbox of Kata's Go runtime"));
  const auto view = scene.line().node().view("s1");
  REQUIRE(view);
  CHECK(view->pod.vmm == tests::process_id(kVmm));
  CHECK(view->plan.mask == CpuSet{2, 3});
}

TEST_CASE("KVM's timer of a VM leaves others' CPUs before anybody reports the VM") {
  constexpr int kTimer = 5000;
  Scene scene;
  scene.admit("other", CpuSet{4, 5});
  scene.start_shim();
  std::filesystem::create_directories(scene.dir.path() / "vc/sbs/s1");
  scene.run_ready();
  scene.start_vmm();
  scene.node.process(2, 0, "kthreadd", "");
  scene.node.process(kTimer, 2, "kvm-pit/" + std::to_string(kVmm), "");
  scene.node.children(2, std::to_string(kTimer));
  scene.calls.own[kTimer] = scene.machine;
  tests::run_for(scene.io, scene.clock, std::chrono::milliseconds(400));
  CHECK(scene.cpus(kTimer) == "0-3,6-7");
}

TEST_CASE("Kata's directories have reported when each sandbox in them was read") {
  Scene scene;
  scene.line().expect(policy::ledger::Source::kPersist);
  scene.start_shim();
  std::filesystem::create_directories(scene.dir.path() / "vc/sbs/s1");
  const auto is_waiting = [&] {
    scene.source.refresh();
    scene.run_ready();
    return !scene.line().node().gate().may_widen();
  };
  CHECK(is_waiting());
  scene.start_vmm();
  CHECK(is_waiting());
  scene.dir.write("vc/sbs/s1/persist.json", "{\"HypervisorState\":");
  CHECK(is_waiting());
  SECTION("its file is complete") { scene.write_persist(CpuSet{2, 3}); }
  SECTION("it is gone") { std::filesystem::remove_all(scene.dir.path() / "vc/sbs/s1"); }
  scene.run_ready();
  CHECK(scene.line().node().gate().may_widen());
}

TEST_CASE("a VMM that started narrowed gets back all CPUs that its shim had") {
  Scene scene;
  scene.admit("other", CpuSet{4, 5});
  scene.start_shim();
  std::filesystem::create_directories(scene.dir.path() / "vc/sbs/s1");
  scene.run_ready();
  scene.start_vmm();
  scene.write_persist(CpuSet{2, 3});
  scene.run_ready();
  CHECK(scene.cpus(kVmm) == "2-3");
  scene.line().release_all();
  CHECK(scene.cpus(kVmm) == "0-7");
}

TEST_CASE("runtime-rs's mask is followed, and owned if it equals the pod's claims") {
  Scene scene;
  scene.start_shim();
  std::filesystem::create_directories(scene.dir.path() / "kata/s1");
  scene.run_ready();
  scene.start_vmm();
  scene.write_mask(CpuSet{2, 3});
  scene.run_ready();
  scene.admit(kUid, CpuSet{2, 3});
  CHECK(scene.line().node().ledger().exclusive() == CpuSet{2, 3});
  CHECK(scene.text(policy::ledger::Source::kCgroup).starts_with("1 sandbox of Kata's runtime-rs"));
  scene.write_mask(CpuSet{6});
  scene.source.notify(Notice::kCgroupWritten);
  CHECK(scene.line().node().view("s1")->plan.mask == CpuSet{6});

  REQUIRE(scene.container("s1", "c1", CpuSet{6}, false));
  scene.source.notify(Notice::kCgroupWritten);
  const auto containers = scene.line().node().view("s1")->pod.containers;
  CHECK((containers.size() == 1 && containers.contains("c1")));
}

TEST_CASE(
    "of runtime-rs's mask the pod's own CPUs get vCPUs of their own, whatever else is in it") {
  Scene scene;
  scene.start_shim();
  std::filesystem::create_directories(scene.dir.path() / "kata/s1");
  scene.run_ready();
  scene.start_vmm();
  scene.write_mask(CpuSet{0, 1, 2, 3});
  scene.run_ready();
  scene.admit(kUid, CpuSet{2});
  const auto view = scene.line().node().view("s1");
  REQUIRE(view->plan.containers.size() == 2);
  CHECK(view->plan.containers.front().dedicated);
  CHECK(scene.cpus(kVmm + 10) == "0-1,3");
  CHECK(scene.cpus(kVmm + 11) == "2");
  REQUIRE(scene.container("s1", "c1", CpuSet{2, 3}, false));
  scene.source.notify(Notice::kCgroupWritten);
  const auto containers = scene.line().node().view("s1")->pod.containers;
  CHECK((containers.size() == 1 && containers.contains("c1")));
}

TEST_CASE("a mask is no report of whose the VM is") {
  Scene scene;
  scene.start_vmm();
  scene.write_mask(CpuSet{2, 3});
  state::Saved saved;
  saved.pod.id = "s1";
  saved.pod.source = policy::ledger::Source::kCgroup;
  saved.pod.vmm = tests::process_id(kVmm);
  std::ofstream(scene.state_dir() / "s1.json") << state::to_text(saved, "boot");
  scene.line().adopt();
  scene.source.notify(Notice::kCgroupWritten);
  REQUIRE(scene.line().node().view("s1")->pod.containers.contains("sandbox-mask"));
  scene.line().handle({policy::ledger::Source::kNri,
                       policy::ledger::PodSeen{.id = "s2", .vmm = tests::process_id(kVmm)}});
  CHECK(scene.line().node().sandbox_ids() == std::vector<std::string>{"s2"});
}

TEST_CASE("the mask container is removed when the runtime reports containers") {
  Scene scene;
  scene.start_shim();
  std::filesystem::create_directories(scene.dir.path() / "kata/s1");
  scene.run_ready();
  scene.start_vmm();
  scene.write_mask(CpuSet{2, 3});
  scene.run_ready();
  REQUIRE(scene.line().node().view("s1")->pod.containers.contains("sandbox-mask"));
  scene.source.notify(Notice::kRuntimeConnected);
  scene.by_runtime(CpuSet{2, 3});
  scene.source.notify(Notice::kCgroupWritten);
  const auto containers = scene.line().node().view("s1")->pod.containers;
  CHECK((containers.size() == 1 && containers.contains("c1")));
}

namespace {

bool has(Scene& scene, const char* container, const CpuSet& mask) {
  const auto view = scene.line().node().view("s1");
  return view->pod.containers.size() == 1 && view->pod.containers.contains(container) &&
         view->plan.mask == mask;
}

}  // namespace

TEST_CASE("containers of a disconnected runtime count, whatever the mask") {
  Scene scene;
  scene.start_vmm();
  scene.by_runtime(CpuSet{2, 3});
  scene.write_mask(CpuSet{6});
  scene.source.notify(Notice::kCgroupWritten);
  CHECK(has(scene, "c1", CpuSet{2, 3}));
}

TEST_CASE("without a runtime, its old containers are dropped when the mask changes") {
  Scene scene(Runtime::kNone);
  scene.start_vmm();
  scene.by_runtime(CpuSet{2, 3});
  scene.write_mask(CpuSet{2, 3});
  scene.source.notify(Notice::kCgroupWritten);
  CHECK(has(scene, "c1", CpuSet{2, 3}));
  for (const CpuSet& mask : {CpuSet{6}, CpuSet{4, 5}}) {
    scene.write_mask(mask);
    scene.source.notify(Notice::kCgroupWritten);
    CHECK(has(scene, "sandbox-mask", mask));
  }
}

TEST_CASE("while the runtime reports, shims are narrowed and nothing else is reported") {
  Scene scene;
  scene.source.notify(Notice::kRuntimeConnected);
  scene.admit("other", CpuSet{4, 5});
  scene.start_shim();
  scene.write_persist(CpuSet{2, 3});
  scene.run_ready();
  CHECK(scene.cpus(kShim) == "0-3,6-7");
  CHECK(scene.line().node().view("s1")->pod.containers.empty());

  scene.start_vmm();
  policy::ledger::PodSeen pod;
  pod.id = "s1";
  pod.vmm = tests::process_id(kVmm);
  scene.line().handle({policy::ledger::Source::kNri, pod});
  CHECK(scene.line().node().ledger().find("s1")->source == policy::ledger::Source::kNri);
  scene.source.notify(Notice::kRuntimeDisconnected);
  scene.source.notify(Notice::kRuntimeConnected);
  CHECK(scene.line().node().view("s1")->pod.vmm == tests::process_id(kVmm));
}

TEST_CASE("Kata's sandboxes that cannot be read: the source is down, and verify does not know") {
  Scene scene;
  const auto unread = [&] {
    scene.source.refresh();
    return line::evaluate_sources(scene.board().sources(), scene.line().node().ledger());
  };
  scene.start_vmm();
  scene.dir.link("vc/sbs", "sbs");
  REQUIRE(unread().size() == 1);
  CHECK(unread()[0].severity == line::Severity::kUnknown);
  CHECK(unread()[0].text.find("cannot be listed") != std::string::npos);
  CHECK(std::ranges::count(scene.notified, "source-down") == 1);
  std::filesystem::remove(scene.dir.path() / "vc/sbs");
  CHECK(unread().empty());

  scene.dir.write("vc/sbs/s1/persist.json", "{");
  tests::run_for(scene.io, scene.clock, kata::KataWatch::kMissedAfter,
                 std::chrono::milliseconds(50));
  CHECK(unread().size() == 1);
  CHECK_FALSE(scene.board().sources().at(policy::ledger::Source::kPersist).up);
  SECTION("the runtime reports its containers") {
    scene.source.notify(Notice::kRuntimeConnected);
    CHECK(unread().empty());
  }
  SECTION("it is read") {
    scene.write_persist(CpuSet{2, 3});
    CHECK(unread().empty());
  }
}

TEST_CASE("the shim proxy is a source while its process exists") {
  Scene scene;
  CHECK_FALSE(scene.board().sources().contains(policy::ledger::Source::kProxy));
  scene.start_shim();
  scene.start_vmm();
  scene.node.process(50, 1, "containerd-shim", "/usr/bin/containerd-shim-kata-affinity-v2");
  scene.line().handle(
      {policy::ledger::Source::kProxy,
       policy::ledger::PodSeen{
           .id = "s1", .vmm = tests::process_id(kVmm), .proxy = tests::process_id(50)}});
  scene.source.refresh();
  CHECK(scene.board().sources().at(policy::ledger::Source::kProxy).up);
  CHECK(scene.text(policy::ledger::Source::kProxy).starts_with("1 sandbox behind the shim proxy"));
  scene.node.end_process(50);
  scene.line().refresh("s1");
  scene.source.refresh();
  CHECK_FALSE(scene.board().sources().at(policy::ledger::Source::kProxy).up);
  CHECK(scene.text(policy::ledger::Source::kProxy) == "proxy process missing for s1");
  scene.line().handle({policy::ledger::Source::kProxy, policy::ledger::PodGone{"s1"}});
  scene.source.refresh();
  CHECK(scene.board().sources().at(policy::ledger::Source::kProxy).up);
}

TEST_CASE("a process that was started after persist.json was written is not its VMM") {
  const auto finds_vmm = [](int ticks) {
    Scene scene;
    const bool found = scene.finds_vmm(ticks);
    CHECK(scene.calls.writes.empty() == !found);
    const bool is_said =
        scene.log_lines.find("was started after persist.json") != std::string::npos;
    CHECK(is_said == !found);
    return found;
  };
  CHECK(finds_vmm(100));
  CHECK(finds_vmm(0));
  CHECK_FALSE(finds_vmm(-100));
  CHECK_FALSE(finds_vmm(-10));
}

TEST_CASE("the number of a VMM that ended while no daemon ran is no VMM, whatever the file's age") {
  Scene scene;
  REQUIRE(scene.finds_vmm(100));
  scene.node.thread(kVmm, kVmm, "qemu-system-x86");  // another one
  scene.start();
  scene.calls.writes.clear();
  scene.line().adopt();
  daemon::SourceNode node{scene.line(), scene.board(), scene.clock};
  kata::KataSource restarted{scene.io,
                             scene.clock,
                             node,
                             {scene.node.proc(), scene.node.debugfs(), scene.node.cgroup()},
                             scene.folders(),
                             Runtime::kNone,
                             scene.log};
  restarted.refresh();
  CHECK(scene.line().node().sandbox_ids().empty());
  CHECK(scene.calls.writes.empty());
  CHECK(scene.text(policy::ledger::Source::kPersist).find("not read") == std::string::npos);
}

TEST_CASE("a persist.json of a time to come proves nothing") {
  Scene scene;
  CHECK_FALSE(scene.finds_vmm(2000));
  CHECK(scene.calls.writes.empty());
  CHECK(scene.log_lines.find("cannot be determined") != std::string::npos);
}

TEST_CASE("a VMM whose arguments name the sandbox is one whatever the clock was set to") {
  const std::string argument =
      GENERATE("sandbox-s1,debug-threads=on", "/run/vc/vm/s1/clh-api.sock", "s1");
  Scene scene;
  scene.boot_vm(kVmm, 3);
  scene.node.arguments(kVmm, {"/usr/bin/qemu-system-x86_64", "-x", argument});
  scene.write_persist(CpuSet{2, 3});
  scene.set_written(std::chrono::hours(1000000));
  scene.source.refresh();
  CHECK(scene.line().node().view("s1"));
}

TEST_CASE(
    "a VMM whose arguments name another sandbox is not this one's, however old the file seems") {
  const bool is_kept = GENERATE(true, false);
  Scene scene;
  if (is_kept) std::filesystem::create_directories(scene.dir.path() / "vc/sbs/s2");
  const std::vector<std::string> other{"/usr/bin/qemu-system-x86_64", "-name", "sandbox-s2"};
  CHECK(scene.finds_vmm(100, other) == !is_kept);  // a VM of Kata's factory has another name
}

TEST_CASE("a VMM that is known by its start time, or by its shim, is one at any time") {
  Scene scene;
  SECTION("known") {
    scene.boot_vm(kVmm, 3);
    scene.line().handle({policy::ledger::Source::kApi,
                         policy::ledger::PodSeen{.id = "s1", .vmm = tests::process_id(kVmm)}});
  }
  SECTION("the shim's child") {
    scene.start_shim();
    scene.start_vmm();
  }
  scene.write_persist(CpuSet{2, 3});
  scene.set_written(std::chrono::nanoseconds(0));
  scene.source.refresh();
  REQUIRE(scene.line().node().view("s1"));
  CHECK(scene.line().node().view("s1")->pod.containers.contains("c1"));
}

TEST_CASE("that a VMM has ended is forgotten when Kata has no directory of its sandbox") {
  Scene scene;
  scene.calls.gone.insert(kVmm);
  scene.line().handle({policy::ledger::Source::kPersist,
                       policy::ledger::PodSeen{.id = "s2", .vmm = tests::process_id(kVmm)}});
  scene.line().check_drift();
  REQUIRE(scene.line().node().ledger().ended().find("s2") != nullptr);
  std::filesystem::create_directories(scene.dir.path() / "vc/sbs/s2");
  scene.source.refresh();
  CHECK(scene.line().node().ledger().ended().find("s2") != nullptr);
  std::filesystem::remove(scene.dir.path() / "vc/sbs/s2");
  scene.source.refresh();
  CHECK(scene.line().node().ledger().ended().find("s2") == nullptr);
}
