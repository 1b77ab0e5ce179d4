// SPDX-License-Identifier: Apache-2.0
// A daemon that comes back to a node that is not as it left it: damaged state, CPUs that were given
// away meanwhile, sources that stay silent. Real programs, a real VMM; masks are read from /proc.
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iostream>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/integration/daemon/programs.hpp"
#include "tests/text.hpp"

using namespace ka;
using policy::CpuSet;
using tests::contains;
using tests::DaemonScene;
using tests::eventually;
using tests::Seconds;
using tests::Vm;

namespace {

/// Sandbox "owner" owns the last CPU, the threads of "guest" share the first; the daemon is dead.
struct Scene : DaemonScene {
  explicit Scene(const std::string& configuration = "drift_check = 1\n")
      : DaemonScene(configuration), vm(path("").parent_path(), 1) {
    const CpuSet mine = tests::allowed(static_cast<int>(::getpid()));
    first = mine.first();
    last = mine.last();
    start();
    const std::string both = std::to_string(first) + ',' + std::to_string(last);
    REQUIRE(ctl({"sandbox", "add", "guest", "--vmm-pid", std::to_string(vm.pid())}).exit == 0);
    REQUIRE(ctl({"container", "update", "guest", "app", "--cpus", both}).exit == 0);
    give_last_to("owner");
    REQUIRE(inside({first}));
    stop();
  }

  std::string put(const std::string& target, const std::string& body) const {
    return raw("PUT /v1/sandboxes/" + target +
               " HTTP/1.1\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) +
               "\r\n\r\n" + body);
  }

  /// A pod of another runtime owns the last CPU; the last answer.
  std::string give_last_to(const std::string& pod) const {
    put(pod, "{}");
    return put(pod + "/containers/app",
               R"({"cpus":")" + std::to_string(last) + R"(","exclusive":true})");
  }

  void stop() {
    daemon().send(SIGKILL);
    daemon().wait();
  }

  /// Whether no thread of the VM may run outside `cpus`.
  bool inside(const CpuSet& cpus) const {
    return std::ranges::all_of(vm.threads(), [&](const auto& thread) {
      return tests::allowed(thread.second).subset_of(cpus);
    });
  }

  /// Watches the masks for two drift checks and more.
  bool stays_inside(const CpuSet& cpus) const {
    return !eventually([&] { return !inside(cpus); }, Seconds(3));
  }

  Vm vm;
  int first = 0, last = 0;
};

}  // namespace

TEST_CASE("a damaged state file does not release its pod's CPUs to others") {
  if (!Vm::possible()) return;
  Scene scene;
  std::ofstream(scene.path("state/owner.json")) << "{\"version\":1,";
  scene.start();
  CHECK(scene.stays_inside({scene.first}));
  CHECK(contains(scene.log(), "cannot read state from before the start"));
  CHECK(
      contains(scene.ctl({"status"}).out, "! no thread gets more CPUs yet: state cannot be read"));
  const auto verify = scene.ctl({"verify"});
  CHECK(verify.exit == 1);
  CHECK(contains(verify.out, "owner.json"));
  CHECK(scene.metric("kata_affinity_start_waiting") == 1);
  SECTION("also after another restart") {
    scene.stop();
    scene.start();
    CHECK(scene.stays_inside({scene.first}));
  }
  SECTION("until an operator overrides it") {
    CHECK(scene.ctl({"reconcile"}).exit == 0);
    CHECK_FALSE(scene.inside({scene.first}));
    CHECK(scene.metric("kata_affinity_start_waiting") == 0);
    CHECK(scene.metric("kata_affinity_state_lost") == 0);
  }
}

TEST_CASE("a state directory that cannot be listed is not treated as empty") {
  if (!Vm::possible()) return;
  Scene scene;
  // The second listing of a directory is that of the state; the first is strace's own. With -D the
  // daemon is our own child, not strace's, and ends with the scene.
  std::vector<std::string> command{"strace", "-D",
                                   "-f",     "-qq",
                                   "-o",     scene.path("trace").string(),
                                   "-P",     scene.path("state").string(),
                                   "-e",     "trace=getdents64",
                                   "-e",     "inject=getdents64:error=EIO:when=1..3"};
  if (std::system("strace -qq -o /dev/null true 2> /dev/null") != 0) {
    std::cout << "skipped: no strace\n";
    return;
  }
  scene.wrap(command);
  scene.start();
  CHECK(
      eventually([&] { return contains(scene.log(), "cannot read state from before the start"); }));
  CHECK(scene.inside({scene.first}));
  CHECK(eventually([&] { return contains(scene.ctl({"status"}).out, "sandbox guest"); },
                   Seconds(15)));
  CHECK(scene.stays_inside({scene.first}));
  CHECK(scene.ctl({"verify"}).exit == 0);
}

TEST_CASE("no written mask contains a CPU that kubelet assigned while the daemon was down") {
  if (!Vm::possible()) return;
  Scene scene("drift_check = 3600\n");
  const auto file = scene.path("cpu_manager_state");
  scene.configure("drift_check = 1\nkubelet_state = \"" + file.string() + "\"\n");
  std::ofstream(file) << R"({"policyName":"static","defaultCpuSet":"","entries":{"other":{"app":")"
                      << scene.last << R"("}}})";
  // Somebody has given every thread every CPU; the state knows nothing of the owner.
  std::filesystem::remove(scene.path("state/owner.json"));
  for (const auto& [name, tid] : scene.vm.threads()) {
    cpu_set_t all;
    CPU_ZERO(&all);
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &all);
    REQUIRE(::sched_setaffinity(tid, sizeof(all), &all) == 0);
  }
  scene.wrap({"strace", "-D", "-f", "-qq", "-o", scene.path("trace").string(), "-e",
              "trace=sched_setaffinity"});
  scene.start();
  CHECK(eventually([&] { return scene.inside({scene.first}); }));
  std::istringstream trace(tests::read_text(scene.path("trace")));
  int writes = 0;
  for (std::string line; std::getline(trace, line);) {
    if (!contains(line, "sched_setaffinity(")) continue;
    ++writes;
    CHECK(contains(line, "[" + std::to_string(scene.first) + "])"));
  }
  CHECK(writes > 0);
}

TEST_CASE("a silent source is waited for, named, and then skipped") {
  if (!Vm::possible()) return;
  Scene scene;
  scene.configure("drift_check = 1\nnri_socket = \"" + scene.path("nobody").string() + "\"\n");
  const int tid = scene.vm.threads().front().second;
  std::filesystem::remove(scene.path("state/owner.json"));
  scene.start();
  CHECK(contains(scene.ctl({"status"}).out, "! no thread gets more CPUs yet: waiting for nri"));
  CHECK(tests::allowed(tid) == CpuSet{scene.first});
  CHECK(eventually([&] { return tests::allowed(tid).contains(scene.last); }, Seconds(20)));
  CHECK(contains(scene.log(), "no report within 10 s of the start, continuing without: nri"));
  CHECK(contains(scene.ctl({"status"}).out, "continuing without: nri"));
}

TEST_CASE("unsaved state is reported in the response, in status and in metrics") {
  if (!Vm::possible()) return;
  Scene scene;
  scene.start();
  REQUIRE(tests::eventually([&] { return contains(scene.log(), "kind=sandbox-adopted"); }));
  const auto file = scene.path("state/other.json");
  std::filesystem::create_directory(file);
  CHECK(contains(scene.give_last_to("other"), "the state of sandbox other is not on disk"));
  CHECK(contains(scene.ctl({"status"}).out, "the state of sandbox other is not on disk"));
  CHECK(scene.metric("kata_affinity_state_unsaved") == 1);
  std::filesystem::remove(file);
  CHECK(tests::eventually([&] { return std::filesystem::is_regular_file(file); }));
  CHECK(tests::eventually([&] { return scene.metric("kata_affinity_state_unsaved") == 0; }));
}

TEST_CASE("a limit on the size of files is reported as a full disk is, and ends no daemon") {
  DaemonScene scene;
  scene.start();
  rlimit before{};
  REQUIRE(::prlimit(scene.daemon().pid(), RLIMIT_FSIZE, nullptr, &before) == 0);
  const rlimit none{0, before.rlim_max};
  REQUIRE(::prlimit(scene.daemon().pid(), RLIMIT_FSIZE, &none, nullptr) == 0);
  const auto put = scene.raw(
      "PUT /v1/sandboxes/s1 HTTP/1.1\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}");
  CHECK(contains(put, "the state of sandbox s1 is not on disk"));
  CHECK(contains(put, "File too large"));
  CHECK(contains(scene.ctl({"status"}).out, "the state of sandbox s1 is not on disk"));
  CHECK(scene.metric("kata_affinity_state_unsaved") == 1);
  REQUIRE(::prlimit(scene.daemon().pid(), RLIMIT_FSIZE, &before, nullptr) == 0);
  CHECK(eventually([&] { return scene.metric("kata_affinity_state_unsaved") == 0; }));
  CHECK(scene.daemon().runs());
}

TEST_CASE("a socket that is removed at run time comes back, and a second daemon is refused") {
  DaemonScene scene;
  scene.configure("drift_check = 1\nread_socket = \"" + scene.path("read.sock").string() + "\"\n");
  scene.start();
  for (const char* name : {"api.sock", "read.sock"}) std::filesystem::remove(scene.path(name));
  const auto second = tests::run(scene.command(), scene.path("second.log"));
  CHECK(second.exit == 1);
  CHECK(contains(second.out, "another daemon serves"));
  CHECK(eventually([&] { return scene.ctl({"status"}).exit == 0; }));
  CHECK(eventually([&] { return std::filesystem::exists(scene.path("read.sock")); }));
  CHECK(contains(scene.log(), "API: its socket was removed or replaced by another program"));
  CHECK(contains(scene.log(), "reads: its socket was removed or replaced by another program"));
}

TEST_CASE("a socket whose place is taken is reported once, and comes back when it is free") {
  DaemonScene scene;
  scene.start();
  std::filesystem::remove(scene.socket());
  std::ofstream(scene.socket()) << "text";
  const std::string words = "its socket was removed or replaced, and cannot be made again";
  CHECK(eventually([&] { return contains(scene.log(), words); }));
  CHECK_FALSE(eventually([&] { return scene.log().find(words) != scene.log().rfind(words); },
                         Seconds(2.5)));
  std::filesystem::remove(scene.socket());
  CHECK(eventually([&] { return scene.ctl({"status"}).exit == 0; }));
}

TEST_CASE("a daemon without the capabilities to see VMMs says what it cannot see") {
  if (::geteuid() != 0 || std::system("command -v setpriv > /dev/null") != 0) return;
  DaemonScene scene;
  scene.start();
  CHECK_FALSE(contains(scene.log(), "VMMs cannot be seen completely"));
  scene.wrap({"setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace"});
  scene.start();
  CHECK(contains(scene.log(), "VMMs cannot be seen completely"));
  CHECK(contains(scene.log(), "without CAP_SYS_PTRACE"));
}

TEST_CASE("a pin that an earlier daemon set ends in time, whenever the drift check is") {
  if (!Vm::possible()) return;
  Scene scene("drift_check = 3600\n");
  scene.start();
  const std::string pin = "guest/pins/emulator", first = std::to_string(scene.first);
  CHECK(contains(scene.put(pin, R"({"cpus":")" + first + R"(","for":5})"), "200 OK"));
  CHECK(contains(scene.ctl({"status", "guest"}).out, "manual pin: emulator"));
  scene.stop();
  scene.start();
  CHECK(eventually([&] { return !contains(scene.ctl({"status", "guest"}).out, "manual pin:"); }));
}
