// SPDX-License-Identifier: Apache-2.0
// Sandboxes whose VMMs are processes of the test: their life is real, all else is files and a
// clock.
#include "affinity/watches/watches.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <csignal>
#include <list>

#include "tests/catch.hpp"
#include "tests/failing_inotify.hpp"
#include "tests/run_loop.hpp"
#include "tests/text_log.hpp"
#include "tests/unit/line/scene.hpp"

using namespace ka;
using namespace std::chrono_literals;
using Protocol = boost::asio::local::stream_protocol;

namespace {

/// A process that sleeps.
class Sleeper {
 public:
  Sleeper() : pid(::fork()) {
    if (pid != 0) return;
    ::pause();
    ::_exit(0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() { end(); }

  void end() {
    if (std::exchange(ended_, true)) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }

  const int pid;

 private:
  bool ended_ = false;
};

constexpr const char* kVmInfo =
    "HTTP/1.1 200 \r\nContent-Length: 36\r\n\r\n{\"config\":{\"cpus\":{\"boot_vcpus\":2}}}";

/// Counts connections, and says the same to each: nothing, or a Cloud Hypervisor's answer.
class FakeMonitor {
 public:
  FakeMonitor(boost::asio::io_context& io, const std::filesystem::path& path,
              std::string answer = {})
      : acceptor_(io, Protocol::endpoint(path.string())), answer_(std::move(answer)) {
    accept();
  }
  int connections = 0;

 private:
  void accept() {
    acceptor_.async_accept([this](boost::system::error_code error, Protocol::socket socket) {
      if (error) return;
      ++connections;
      boost::asio::write(socket, boost::asio::buffer(answer_), error);
      held_.push_back(std::move(socket));
      accept();
    });
  }

  Protocol::acceptor acceptor_;
  std::string answer_;
  std::list<Protocol::socket> held_;
};

struct Scene {
  Scene() {
    host.boot_vm(vmm.pid, 2);
    std::filesystem::create_directories(files.path() / "vc/vm/s1");
  }

  void add(const std::string& qmp_socket = {}) {
    policy::ledger::PodSeen pod;
    pod.id = "s1";
    pod.vmm = tests::process_id(vmm.pid);
    pod.qmp_socket = qmp_socket;
    REQUIRE(host.requests().submit({policy::ledger::Source::kPersist, pod}));
    notify(board::NotificationKind::kSandboxAdopted);
  }
  void notify(board::NotificationKind kind) {
    host.board().notify(kind, "s1", {});
    tests::run_ready(io);
  }
  void be_cloud_hypervisor() const {
    host.node.arguments(vmm.pid, {"/opt/kata/bin/cloud-hypervisor"});
  }
  bool knows(int vcpu) { return host.line().node().view("s1")->vcpus.size() > std::size_t(vcpu); }
  void pass(std::chrono::milliseconds time) {
    host.clock.advance(time);
    tests::run_ready(io);
  }

  Sleeper vmm;
  tests::TempDir files;
  tests::LineScene host;
  boost::asio::io_context io;
  std::string log_lines;
  log::Log log = tests::text_log(log::Level::kWarning, log_lines);
  watches::Watches watches{io,
                           host.line(),
                           host.board(),
                           {.proc = host.node.proc(),
                            .debugfs = host.node.debugfs(),
                            .cgroup = host.node.cgroup(),
                            .sys = host.node.sys(),
                            .run = files.path()},
                           [] {},
                           log,
                           host.clock};
};

}  // namespace

TEST_CASE("a VMM that exits ends its sandbox") {
  Scene scene;
  scene.add();
  REQUIRE(scene.host.line().node().view("s1"));
  SECTION("while it is watched") { scene.vmm.end(); }
  SECTION("before it is watched") {
    scene.vmm.end();
    scene.notify(board::NotificationKind::kUnseen);
  }
  tests::run_ready(scene.io);
  CHECK_FALSE(scene.host.line().node().view("s1"));
}

TEST_CASE("after an event a sandbox is observed again after 0.1, 0.5 and 2 s, and no more") {
  Scene scene;
  scene.add();
  scene.notify(board::NotificationKind::kContainerUpdated);
  int vcpu = 2;
  for (const auto time : {100ms, 400ms, 1500ms}) {
    scene.host.plug(scene.vmm.pid, vcpu);
    scene.pass(time - 1ms);
    CHECK_FALSE(scene.knows(vcpu));
    scene.pass(1ms);
    CHECK(scene.knows(vcpu));
    ++vcpu;
  }
  scene.host.plug(scene.vmm.pid, vcpu);
  scene.pass(1h);
  CHECK_FALSE(scene.knows(vcpu));

  SECTION("nor after an event that changes nothing in the VM") {
    scene.notify(board::NotificationKind::kSeen);
    scene.pass(1h);
    CHECK_FALSE(scene.knows(vcpu));
  }
}

TEST_CASE("Cloud Hypervisor's monitor is found when its socket appears, after the VMM") {
  Scene scene;
  scene.be_cloud_hypervisor();
  scene.add();
  FakeMonitor api(scene.io, scene.files.path() / "vc/vm/s1/clh-api.sock");
  scene.pass(1s);
  CHECK(api.connections == 0);
  scene.notify(board::NotificationKind::kSeen);
  CHECK(api.connections == 1);
}

TEST_CASE("a socket from a source has precedence over the VMM's arguments") {
  Scene scene;
  scene.be_cloud_hypervisor();
  FakeMonitor api(scene.io, scene.files.path() / "vc/vm/s1/clh-api.sock");
  FakeMonitor named(scene.io, scene.files.path() / "monitor.sock");
  scene.add((scene.files.path() / "monitor.sock").string());
  CHECK(named.connections == 1);
  CHECK(api.connections == 0);
}

TEST_CASE("a socket that must not be used is rejected once") {
  Scene scene;
  const auto katas = scene.files.path() / "run/vc/vm/s1/qmp.sock";
  std::filesystem::create_directories(katas.parent_path());
  FakeMonitor qmp(scene.io, katas);
  scene.add(katas.string());
  scene.notify(board::NotificationKind::kSeen);
  CHECK(qmp.connections == 0);
  const auto first = scene.log_lines.find("VMM monitor not used");
  REQUIRE(first != std::string::npos);
  CHECK(scene.log_lines.find("VMM monitor not used", first + 1) == std::string::npos);
}

TEST_CASE("a monitor is queried again when the number of its VMM's threads changes") {
  Scene scene;
  scene.be_cloud_hypervisor();
  FakeMonitor api(scene.io, scene.files.path() / "vc/vm/s1/clh-api.sock", kVmInfo);
  scene.add();
  scene.pass(1h);
  scene.watches.refresh();
  tests::run_ready(scene.io);
  const int before = api.connections;
  scene.watches.refresh();
  tests::run_ready(scene.io);
  CHECK(api.connections == before);
  scene.host.plug(scene.vmm.pid, 2);
  scene.host.line().refresh("s1");
  scene.watches.refresh();
  tests::run_ready(scene.io);
  CHECK(api.connections == before + 1);
}

TEST_CASE("an unresponsive monitor is reported once, until it responds again") {
  Scene scene;
  scene.be_cloud_hypervisor();
  FakeMonitor api(scene.io, scene.files.path() / "vc/vm/s1/clh-api.sock");
  scene.add();
  tests::run_for(scene.io, scene.host.clock, 30s, 50ms);
  CHECK(api.connections > 3);
  const auto first = scene.log_lines.find("VMM monitor not responding");
  REQUIRE(first != std::string::npos);
  CHECK(scene.log_lines.find("VMM monitor not responding", first + 1) == std::string::npos);
}

TEST_CASE("cgroups that cannot be watched are late and named, until they can be") {
  tests::InotifyFails fails(
      GENERATE(tests::FailingInotify{.instance = EMFILE}, tests::FailingInotify{.watch = ENOSPC}));
  Scene scene;
  scene.host.node.in_cgroup(scene.vmm.pid, "kubepods/s1", "0-7");
  scene.add();
  scene.watches.refresh();
  CHECK(scene.host.board().late().contains(policy::ledger::Source::kCgroup));
  CHECK(std::ranges::count(scene.host.notified, "source-late") == 1);

  fails.end();
  scene.watches.refresh();
  CHECK(scene.host.board().late().empty());
  CHECK(std::ranges::count(scene.host.notified, "source-in-time") == 1);
}
