// SPDX-License-Identifier: Apache-2.0
// The daemon and the command line as users meet them: real programs, a real VMM, masks read from
// /proc by the test itself.
#include <sched.h>
#include <unistd.h>
#include <csignal>
#include <filesystem>

#include <iostream>
#include <thread>

#include "affinity/host/cgroup.hpp"
#include "tests/catch.hpp"
#include "tests/integration/daemon/programs.hpp"
#include "tests/scratch_cgroup.hpp"
#include "tests/text.hpp"

using namespace ka;
using policy::CpuSet;
using tests::contains;
using tests::DaemonScene;
using tests::eventually;
using tests::Seconds;
using tests::Vm;

namespace {

/// A status without the line about memory, which is read when there is time, and grows.
std::string without_memory(std::string status) {
  const std::size_t begin = status.find("  memory: ");
  if (begin != std::string::npos) status.erase(begin, status.find('\n', begin) - begin + 1);
  return status;
}

/// A daemon, a VM of two vCPUs, and two CPUs to put it on.
struct Scene : DaemonScene {
  explicit Scene(const std::string& configuration = "drift_check = 1\nhousekeeping = \"sandbox\"\n")
      : DaemonScene(configuration), vm(path("").parent_path(), 2) {
    const CpuSet mine = tests::allowed(0) | tests::allowed(static_cast<int>(::getpid()));
    first = mine.first();
    last = mine.last();
  }

  void add() {
    REQUIRE(ctl({"sandbox", "add", "s1", "--vmm-pid", std::to_string(vm.pid()), "--qmp",
                 vm.monitor(), "--pod-name", "shop/cart"})
                .exit == 0);
    REQUIRE(ctl({"container", "update", "s1", "shared", "--cpus", std::to_string(first)}).exit ==
            0);
    REQUIRE(update_exclusive() == 0);
  }

  int update_exclusive() const {
    return ctl({"container", "update", "s1", "app", "--cpus", std::to_string(last), "--exclusive"})
        .exit;
  }

  /// Every thread where the promise puts it: one vCPU on the last CPU, all else on the first.
  bool as_promised() const {
    int on_last = 0;
    for (const auto& [name, tid] : vm.threads()) {
      const CpuSet cpus = tests::allowed(tid);
      if (cpus == CpuSet{last} && name.starts_with("CPU ")) {
        ++on_last;
      } else if (cpus != CpuSet{first}) {
        return false;
      }
    }
    return on_last == 1;
  }

  /// The daemon looks again for two seconds after an event; what is to be found without that must
  /// wait for its end.
  static void wait_for_debounce() { std::this_thread::sleep_for(std::chrono::milliseconds(2300)); }

  void give_back(int tid) const {
    cpu_set_t all;
    CPU_ZERO(&all);
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &all);
    REQUIRE(::sched_setaffinity(tid, sizeof(all), &all) == 0);
  }

  Vm vm;
  int first = 0, last = 0;
};

}  // namespace

TEST_CASE("containers added by hand are placed, shown, explained and verified") {
  if (!Vm::possible()) return;
  Scene scene;
  scene.start();
  CHECK(scene.ctl({"status"}).out.starts_with("no VM sandboxes\n"));
  scene.add();
  CHECK(scene.as_promised());
  CHECK(scene.ctl({"verify"}).exit == 0);
  const auto status = scene.ctl({"status", "s1"});
  CHECK(status.exit == 0);
  CHECK(contains(status.out, "sandbox s1 (shop/cart): mask"));
  CHECK(contains(status.out, "as planned"));
  CHECK(contains(status.out, "dedicated to app"));
  CHECK(contains(scene.ctl({"explain", "s1"}).out, "vCPU 1 runs only on CPU"));
  CHECK(contains(scene.ctl({"map"}).out, "shop/cart, container app (VM)"));
  CHECK(eventually([&] {  // the monitor takes a moment to answer
    return contains(scene.ctl({"status", "--json"}).out, R"("vcpu_source":"qmp)");
  }));

  CHECK(scene.ctl({"container", "rm", "s1", "app"}).exit == 0);
  CHECK(tests::allowed(scene.vm.thread("CPU 1/TCG")) == CpuSet{scene.first});
  CHECK(scene.ctl({"sandbox", "rm", "s1"}).exit == 0);
  CHECK(tests::allowed(scene.vm.thread("CPU 1/TCG")).contains(scene.last));
  CHECK(scene.ctl({"explain", "s1"}).exit == 2);
}

TEST_CASE("doctor finds a VM with too few vCPUs, and reports a daemon that cannot be reached") {
  if (!Vm::possible()) return;
  const tests::TempDir files;
  const Vm vm(files.path(), 1);
  DaemonScene scene;
  CHECK(contains(scene.ctl({"doctor"}).out, "no sandbox was checked: "));
  scene.start();
  const CpuSet all = tests::allowed(static_cast<int>(::getpid()));
  REQUIRE(scene.ctl({"sandbox", "add", "s1", "--vmm-pid", std::to_string(vm.pid())}).exit == 0);
  REQUIRE(scene
              .ctl({"container", "update", "s1", "app", "--exclusive", "--cpus",
                    policy::format_list(all)})
              .exit == 0);
  const auto doctor = scene.ctl({"doctor"});
  CHECK(doctor.exit == 1);
  CHECK(contains(doctor.out, "  FAIL  vcpus    sandbox s1: container app has 1 vCPU for CPU"));
  CHECK(contains(doctor.out, "-> a VM needs a vCPU for each CPU"));
}

TEST_CASE("status shows where the VM's memory lies") {
  if (!Vm::possible() || !std::filesystem::exists("/proc/self/numa_maps")) return;
  Scene scene("drift_check = 1\nmemory = \"migrate\"\n");
  scene.start();
  scene.add();
  CHECK(eventually([&] { return contains(scene.ctl({"status", "s1"}).out, "  memory: "); }));
  const auto status = scene.ctl({"status", "s1"}).out;
  CHECK(contains(status, " MiB on node 0"));
  CHECK(contains(scene.ctl({"explain", "s1"}).out, "[numa_maps]"));
  CHECK(scene.ctl({"sandbox", "rm", "s1"}).exit == 0);
}

TEST_CASE("a thread pinned by hand stays pinned across a kill, until the pin is removed") {
  if (!Vm::possible()) return;
  Scene scene;
  scene.start();
  scene.add();
  const std::string last = std::to_string(scene.last);
  const auto refused = scene.ctl({"iothreadpin", "s1", "io1", last});
  CHECK(refused.exit == 2);
  CHECK(contains(refused.out, "belongs to a dedicated vCPU"));
  REQUIRE(scene.ctl({"iothreadpin", "s1", "io1", last, "--force"}).exit == 0);
  CHECK(tests::allowed(scene.vm.thread("IO io1")) == CpuSet{scene.last});
  const auto shown = scene.ctl({"iothreadpin", "s1"});
  CHECK(shown.exit == 0);
  CHECK(contains(shown.out, "iothread io1"));
  CHECK(contains(shown.out, "manual pin"));
  CHECK_FALSE(contains(shown.out, "emulator"));
  const auto report = scene.ctl({"verify"});
  CHECK(report.exit == 0);
  CHECK(report.out.starts_with("degraded: "));
  CHECK(contains(report.out, "pinned manually to CPU " + last));
  CHECK(contains(report.out, "-> kata-affinityctl iothreadpin s1 io1 --remove"));
  CHECK(scene.ctl({"verify", "--strict"}).exit == 1);
  CHECK(contains(scene.ctl({"status", "s1"}).out, ", by uid 0 (pid "));
  scene.daemon().send(SIGKILL);
  scene.daemon().wait();
  scene.start();
  CHECK(tests::allowed(scene.vm.thread("IO io1")) == CpuSet{scene.last});
  CHECK(contains(scene.ctl({"status", "s1"}).out, "manual pin"));

  const auto missing = scene.ctl({"vcpupin", "s1", "7", last});
  CHECK(missing.exit == 2);
  CHECK(missing.out == "kata-affinityctl: sandbox \"s1\" has no vCPU 7\n");
  CHECK(scene.ctl({"emulatorpin", "s1", "8000"}).exit == 2);
  CHECK(scene.ctl({"iothreadpin", "s1", "io1", "--remove"}).exit == 0);
  CHECK(scene.as_promised());
  CHECK(scene.ctl({"iothreadpin", "s1", "io1", "--remove"}).exit == 2);

  REQUIRE(scene.ctl({"iothreadpin", "s1", "io1", last, "--force", "--for", "3s"}).exit == 0);
  CHECK(tests::allowed(scene.vm.thread("IO io1")) == CpuSet{scene.last});
  CHECK(eventually([&] { return scene.as_promised(); }, Seconds(8)));
}

TEST_CASE("a monitor that fails is reported once, and the VM is placed without it") {
  if (!Vm::possible()) return;
  Scene scene;
  scene.start();
  REQUIRE(scene
              .ctl({"sandbox", "add", "s1", "--vmm-pid", std::to_string(scene.vm.pid()), "--qmp",
                    scene.path("nobody").string()})
              .exit == 0);
  REQUIRE(scene.update_exclusive() == 0);
  CHECK(eventually([&] { return contains(scene.log(), "VMM monitor not responding"); }));
  std::this_thread::sleep_for(std::chrono::seconds(1));  // it is tried several times in this time
  const std::string log = scene.log();
  CHECK(log.find("VMM monitor not responding") == log.rfind("VMM monitor not responding"));
  CHECK(contains(scene.ctl({"status", "--json"}).out, R"("vcpu_source":"thread-names")"));
}

TEST_CASE("verify finds drift, the drift check repairs and counts it") {
  if (!Vm::possible()) return;
  Scene scene("drift_check = 5\n");
  scene.start();
  scene.add();
  Scene::wait_for_debounce();
  const int tid = scene.vm.thread("CPU 1/TCG");
  scene.give_back(tid);
  const auto report = scene.ctl({"verify"});
  CHECK(report.exit == 1);
  CHECK(contains(report.out, "drift"));
  CHECK(eventually([&] { return scene.as_promised(); }, Seconds(8)));
  CHECK(scene.metric("kata_affinity_drift_found_total") == 1);
  CHECK(scene.metric("kata_affinity_drift_repaired_total") == 1);
  CHECK(scene.ctl({"verify"}).exit == 0);
}

TEST_CASE("a vCPU plugged right after an event is placed soon") {
  if (!Vm::possible()) return;
  Scene scene("drift_check = 3600\n");
  scene.start();
  scene.add();
  scene.vm.plug_vcpu();
  const int plugged = scene.vm.thread("CPU 2/TCG");
  CHECK(eventually(
      [&] {
        return tests::allowed(plugged) == CpuSet{scene.first} ||
               tests::allowed(plugged) == CpuSet{scene.last};
      },
      Seconds(4)));
  CHECK(scene.as_promised());
}

TEST_CASE("after a kill the daemon adopts everything and writes nothing") {
  if (!Vm::possible()) return;
  Scene scene("drift_check = 1\nhousekeeping = \"sandbox\"\nguest = \"none\"\n");
  scene.start();
  scene.add();
  const std::string before = without_memory(scene.ctl({"status"}).out);
  scene.daemon().send(SIGKILL);
  CHECK(scene.daemon().wait() == 128 + SIGKILL);
  CHECK(scene.as_promised());
  scene.start();
  CHECK(without_memory(scene.ctl({"status"}).out) == before);
  CHECK(scene.metric("kata_affinity_writes_total") == 0);
  CHECK(scene.ctl({"verify"}).exit == 0);
}

TEST_CASE("a VMM that dies ends its sandbox immediately") {
  if (!Vm::possible()) return;
  Scene scene("drift_check = 3600\n");
  scene.start();
  scene.add();
  Scene::wait_for_debounce();
  scene.vm.kill();
  CHECK(eventually([&] { return contains(scene.log(), "sandbox-ended"); }, Seconds(4)));
  CHECK(scene.ctl({"status"}).out.starts_with("no VM sandboxes\n"));
}

TEST_CASE("another program's write to a cgroup is handled immediately") {
  if (!Vm::possible()) return;
  const auto cgroups = host::Cgroups::find("/proc");
  if (!cgroups) return;
  Scene scene("drift_check = 3600\n");
  const tests::ScratchCgroup cgroup(*cgroups);
  if (!cgroup.ready() || !cgroup.write("cgroup.procs", std::to_string(scene.vm.pid()))) {
    std::cout << "skipped: no cgroup can be made below " << cgroups->mount() << '\n';
    return;
  }
  scene.start();
  scene.add();
  Scene::wait_for_debounce();
  // The kernel now gives every thread the first CPU only, and forgets or keeps their own masks.
  REQUIRE(cgroup.write("cpuset.cpus", std::to_string(scene.first)));
  CHECK(eventually([&] {
    return contains(scene.ctl({"status"}).out,
                    "CPU " + std::to_string(scene.last) + " exclusive, vCPU");
  }));
  REQUIRE(
      cgroup.write("cpuset.cpus", std::to_string(scene.first) + ',' + std::to_string(scene.last)));
  CHECK(eventually([&] { return scene.as_promised(); }, Seconds(2)));
  scene.vm.kill();
}

TEST_CASE("SIGTERM ends the daemon and leaves every thread in place") {
  if (!Vm::possible()) return;
  Scene scene;
  scene.start();
  scene.add();
  scene.daemon().send(SIGTERM);
  CHECK(scene.daemon().wait() == 0);
  CHECK(scene.as_promised());
  CHECK_FALSE(std::filesystem::exists(scene.socket()));
  CHECK(scene.ctl({"status"}).exit == 3);
}

TEST_CASE("a reload applies valid settings and rejects invalid ones") {
  if (!Vm::possible()) return;
  Scene scene;
  scene.start();
  scene.add();
  scene.configure("vcpu_pinning = \"sometimes\"\n");
  scene.daemon().send(SIGHUP);
  CHECK(eventually([&] { return contains(scene.log(), "affinity.toml:2:16: "); }));
  CHECK(scene.as_promised());
  scene.configure("vhost = \"0-8191\"\n");
  scene.daemon().send(SIGHUP);
  CHECK(
      eventually([&] { return contains(scene.log(), "affinity.vhost: the machine has no CPUs"); }));
  scene.configure("enable = false\n");
  scene.daemon().send(SIGHUP);
  const int tid = scene.vm.thread("CPU 1/TCG");
  CHECK(eventually([&] { return tests::allowed(tid).contains(scene.first); }));
  CHECK(contains(scene.ctl({"status"}).out, "released"));
  scene.configure("enable = true\n");
  scene.daemon().send(SIGHUP);
  CHECK(eventually([&] { return scene.as_promised(); }));
}

TEST_CASE("observe mode plans and reports, and writes nothing") {
  if (!Vm::possible()) return;
  Scene scene("mode = \"observe\"\n");
  scene.start();
  scene.add();
  CHECK(tests::allowed(scene.vm.thread("CPU 1/TCG")).contains(scene.first));
  CHECK(scene.metric("kata_affinity_writes_total") == 0);
  CHECK(contains(scene.ctl({"status"}).out, "NOT as planned"));
}

TEST_CASE("release restores masks until reconcile") {
  if (!Vm::possible()) return;
  Scene scene;
  scene.start();
  scene.add();
  CHECK(scene.ctl({"release"}).exit == 0);
  CHECK(tests::allowed(scene.vm.thread("CPU 1/TCG")).contains(scene.first));
  CHECK(scene.ctl({"reconcile", "s1"}).exit == 0);
  CHECK(scene.as_promised());
}

TEST_CASE("impossible requests exit with status 2 and change nothing") {
  if (!Vm::possible()) return;
  Scene scene;
  scene.start();
  scene.add();
  const auto before = scene.ctl({"status", "--json"}).out;
  const std::vector<std::pair<std::vector<std::string>, std::string>> refused = {
      {{"container", "update", "s9", "c", "--cpus", "0"}, "no sandbox \"s9\""},
      {{"container", "update", "s1", "c", "--cpus", "8191"}, "no CPU 8191"},
      {{"container", "update", "s1", "c", "--cpus", "3-1"}, "range ends before it starts"},
      {{"container", "update", "s1", "c", "--mems", "77"}, "no node 77"},
      {{"emulatorpin", "s1", std::to_string(scene.last)}, "belongs to a dedicated vCPU"},
      {{"vcpupin", "s1", "0", std::to_string(scene.last)}, "belongs to a dedicated vCPU"},
      {{"sandbox", "add", "s2", "--vmm-pid", std::to_string(::getpid())}, "not a VMM"},
      {{"sandbox", "add", "s2", "--vmm-pid", "4194304"}, "does not exist"},
      {{"sandbox", "add", "s2", "--vmm-pid", std::to_string(scene.vm.pid())}, "belongs to"},
      {{"sandbox", "add", "s1", "--vmm-pid", std::to_string(scene.vm.pid()), "--qmp",
        "/run/vc/vm/s1/qmp.sock"},
       "Kata's own"},
      {{"sandbox", "add", "../x", "--vmm-pid", "1"}, "sandbox id"},
      {{"sandbox", "rm", "s9"}, "no sandbox \"s9\""},
      {{"container", "rm", "s1", "c9"}, "no container \"c9\""},
      {{"reconcile", "s9"}, "no sandbox \"s9\""},
      {{"status", "s9"}, "no sandbox \"s9\""},
  };
  for (const auto& [arguments, reason] : refused) {
    const auto ended = scene.ctl(arguments);
    CAPTURE(ended.out, reason);
    CHECK(ended.exit == 2);
    CHECK(contains(ended.out, reason));
  }
  CHECK(scene.ctl({"status", "--json"}).out == before);
}

TEST_CASE("events are reported as they happen") {
  if (!Vm::possible()) return;
  Scene scene;
  scene.start();
  tests::Program listener({KA_CTL, "events", "--json", "--socket", scene.socket()},
                          scene.path("events"));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  scene.add();
  CHECK(eventually([&] {
    return contains(tests::read_text(scene.path("events")), R"("kind":"container-updated")");
  }));
  scene.daemon().send(SIGTERM);
  CHECK(listener.wait() == 3);
}
