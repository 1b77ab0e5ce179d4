// SPDX-License-Identifier: Apache-2.0
// Sandboxes whose guests have no agent but Kata's, played by a script behind a unix socket.
#include <boost/asio/buffer.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <fstream>
#include <list>
#include <optional>
#include <utility>

#include "affinity/guests/guests.hpp"
#include "tests/catch.hpp"
#include "tests/run_loop.hpp"
#include "tests/text_log.hpp"
#include "tests/unit/guest-agent/kata_peer.hpp"
#include "tests/unit/line/scene.hpp"

using namespace ka;
using namespace std::chrono_literals;
using Protocol = boost::asio::local::stream_protocol;
using Updates = std::vector<std::pair<std::string, std::string>>;

namespace {

/// kata-agent, for one client after the other.
class KataServer {
 public:
  KataServer(boost::asio::io_context& io, const std::filesystem::path& path)
      : acceptor_(io, Protocol::endpoint(path.string())) {
    accept();
  }

  /// Somebody else holds the lock under which it works; then it goes on.
  void hold() { held_ = true; }
  void go_on() {
    held_ = false;
    for (Client& client : clients_) answer(client);
  }

  /// It is gone, with its socket.
  void stop() {
    acceptor_.close();
    for (Client& client : clients_) client.socket.close();
  }

  tests::KataPeer peer;
  int connections = 0;

 private:
  struct Client {
    explicit Client(Protocol::socket connected) : socket(std::move(connected)) {}
    Protocol::socket socket;
    std::array<char, 4096> buffer{};
    std::string received;
  };

  void accept() {
    acceptor_.async_accept([this](boost::system::error_code error, Protocol::socket socket) {
      if (error) return;
      ++connections;
      read(clients_.emplace_back(std::move(socket)));
      accept();
    });
  }

  void read(Client& client) {
    client.socket.async_read_some(
        boost::asio::buffer(client.buffer),
        [this, &client](boost::system::error_code error, std::size_t size) {
          if (error) return;
          client.received.append(client.buffer.data(), size);
          if (!held_) answer(client);
          read(client);
        });
  }

  void answer(Client& client) {
    boost::system::error_code ignored;
    const auto out = peer.receive(std::exchange(client.received, {}));
    boost::asio::write(client.socket, boost::asio::buffer(out), ignored);
  }

  Protocol::acceptor acceptor_;
  std::list<Client> clients_;
  bool held_ = false;
};

const std::string kApp(64, 'a');
const std::string kWeb(64, 'b');

line::Options through(policy::plan::GuestAgent agent) {
  line::Options options;
  options.settings.guest.agent = agent;
  return options;
}

/// A VM and kata-agent in its guest.
struct Scene {
  explicit Scene(int vcpus = 3, const std::string& kernel = "")
      : host(8, through(policy::plan::GuestAgent::kKataAgent)) {
    boot_pod("s1", 100, vcpus, kernel);
    begin();
  }

  void boot_pod(const std::string& id, int pid, int vcpus, const std::string& kernel,
                const std::string& initrd = "/x/kata.initrd") {
    host.boot_vm(pid, vcpus);
    host.node.arguments(
        pid, {"/usr/bin/qemu-system-x86_64", "-smp", std::to_string(vcpus) + ",maxcpus=8",
              "-kernel", image(kernel), "-initrd", initrd});
    policy::ledger::PodSeen pod;
    pod.id = id;
    pod.vmm = tests::process_id(pid);
    pod.agent = "unix://" + (host_dir.path() / "agent").string();
    REQUIRE(host.requests().submit({policy::ledger::Source::kApi, pod}));
  }

  /// A kernel whose name does not tell its release; none where that is empty.
  std::string image(const std::string& release) {
    const auto path = host_dir.path() / "vmlinux.container";
    if (!release.empty()) std::ofstream(path) << "\177ELF....Linux version " << release << " (x)";
    return path.string();
  }

  void begin() { guests.emplace(io, host.line(), host.board(), roots, log, host.clock); }
  /// The daemon is killed, and started with other settings.
  void restart(policy::plan::GuestAgent agent) {
    guests.reset();
    host.start();
    host.line().configure(through(agent));
    host.line().adopt();
    begin();
    advance();
  }

  void run_for(std::chrono::milliseconds time) { tests::run_for(io, host.clock, time); }
  void advance() { run_for(300ms); }
  /// They are created, and nothing else happens.
  void run_containers(policy::CpuSet own = {5}) {
    REQUIRE(host.container("s1", kWeb, policy::CpuSet{0, 1, 2, 3}, false));
    REQUIRE(host.container("s1", kApp, std::move(own), true));
    advance();
  }
  void plug(int vcpu) {
    host.plug(100, vcpu);
    host.line().reconcile_all();
    advance();
  }
  void unplug(int vcpu) {
    host.node.end_thread(100, 110 + vcpu);
    host.line().reconcile_all();
    advance();
  }
  /// A start that is held until the guest has placed the container.
  bool starts_at_once(const std::string& container, const std::string& sandbox = "s1") {
    auto started = std::make_shared<bool>(false);
    guests->await(sandbox, container, [started] { *started = true; });
    return *started;
  }
  std::size_t warnings() const {
    return static_cast<std::size_t>(std::ranges::count(log_lines, '\n'));
  }
  const board::GuestView& view() { return *host.line().node().view("s1")->guest; }
  Updates writes() const { return server.peer.updates; }
  /// What a container was told last.
  std::string last(const std::string& container) {
    std::string cpus;
    for (const auto& [id, set] : server.peer.updates) {
      if (id == container) cpus = set;
    }
    return cpus;
  }
  std::optional<policy::GuestDoubt> doubt(const std::string& container) {
    const auto& doubts = view().doubts;
    const auto found = doubts.find(container);
    return found == doubts.end() ? std::nullopt : std::optional(found->second);
  }
  std::string own_vcpu() {
    const auto& plan = host.line().node().view("s1")->plan;
    const auto vcpu = std::ranges::find(plan.vcpus, policy::plan::VcpuRole::kDedicated,
                                        &policy::plan::VcpuPlan::role);
    return std::to_string(vcpu->index);
  }

  tests::TempDir host_dir;
  tests::LineScene host;
  boost::asio::io_context io;
  std::string log_lines;
  log::Log log = tests::text_log(log::Level::kWarning, log_lines);
  KataServer server{io, host_dir.path() / "agent"};
  vmm::Roots roots{.proc = host.node.proc(),
                   .debugfs = host.node.debugfs(),
                   .cgroup = host.node.cgroup(),
                   .run = host_dir.path()};
  std::optional<guests::Guests> guests;
};

}  // namespace

TEST_CASE("kata-agent gets containers' guest CPUs if their numbers are certain") {
  Scene scene;
  scene.run_containers();
  REQUIRE(scene.view().connected);
  CHECK(scene.view().text == "kata-agent 4.1.0");
  CHECK(scene.last(kApp) == scene.own_vcpu());
  CHECK(scene.last(kWeb).find(scene.own_vcpu()) == std::string::npos);
  CHECK(scene.view().current);
  CHECK(scene.host.verifier().verify().ok());

  SECTION("unchanged requests are not repeated") {
    const auto before = scene.server.peer.updates.size();
    scene.host.line().reconcile_all();
    scene.advance();
    CHECK(scene.server.peer.updates.size() == before);
  }
  SECTION("a plugged vCPU makes numbers uncertain, and narrowed containers get all CPUs") {
    scene.plug(7);
    CHECK(scene.last(kApp) == "0-3,7");  // by counting it is CPU 3, by its index 7
    CHECK(scene.last(kWeb) == "0-3,7");
    CHECK(scene.doubt(kApp) == policy::GuestDoubt::kNumbersUncertain);
    CHECK_FALSE(scene.view().report);
    CHECK(scene.starts_at_once(kApp));
    scene.plug(6);
    CHECK(scene.last(kApp) == "0-4,6-7");
    scene.unplug(7);
    scene.unplug(6);
    CHECK(scene.view().text == "kata-agent 4.1.0");
    CHECK(scene.last(kApp) == scene.own_vcpu());
    CHECK_FALSE(scene.doubt(kApp));
  }
  SECTION("a release writes all CPUs: a cpuset cannot be cleared") {
    REQUIRE(scene.host.requests().release("s1"));
    scene.advance();
    CHECK(scene.last(kApp) == "0-2");
    CHECK(scene.last(kWeb) == "0-2");
    CHECK(scene.host.verifier().verify().ok());
  }
  SECTION("and so does the end of the sandbox") {
    REQUIRE(scene.host.remove("s1"));
    scene.advance();
    CHECK(scene.last(kApp) == "0-2");
  }
  SECTION("with guest = none, narrowed containers are widened, and followed") {
    scene.host.line().configure(through(policy::plan::GuestAgent::kNone));
    scene.advance();
    CHECK(scene.last(kApp) == "0-2");
    CHECK(scene.last(kWeb) == "0-2");
    scene.plug(3);
    CHECK(scene.last(kApp) == "0-3");
    CHECK(scene.view().writes.containers.size() == 2);
  }
  SECTION("also by the next daemon") {
    scene.restart(policy::plan::GuestAgent::kNone);
    CHECK(scene.last(kApp) == "0-2");
    CHECK(scene.last(kWeb) == "0-2");
  }
  SECTION("a container that left the plan gets all CPUs") {
    REQUIRE(scene.host.requests().submit(
        {policy::ledger::Source::kApi, policy::ledger::ContainerGone{"s1", kApp}}));
    scene.advance();
    CHECK(scene.last(kApp) == "0-2");
    CHECK(scene.last(kWeb) == "0-2");
  }
}

TEST_CASE("no container is narrowed before its vCPUs exist") {
  struct Row {
    std::string kernel;
    int counted;
    std::string app, web;
  };
  // Linux 6.1 numbers what is plugged in its order, 6.12 by APIC id.
  const Row row = GENERATE(Row{"", 3, "", ""}, Row{"6.1.62", 3, "1-2", "0"},
                           Row{"6.1.62", 0, "", ""}, Row{"6.12.48", 0, "6-7", "0"});
  CAPTURE(row.kernel, row.counted);
  Scene scene(1, row.kernel);
  scene.run_containers({4, 5});
  CHECK(scene.writes().empty());
  CHECK(scene.doubt(kApp) == policy::GuestDoubt::kVcpusMissing);
  CHECK(scene.starts_at_once(kApp));
  scene.plug(7);
  CHECK(scene.last(kApp).empty());
  scene.server.peer.online = row.counted;
  scene.plug(6);
  scene.run_for(1s);
  CHECK(scene.last(kApp) == row.app);
  CHECK(scene.last(kWeb) == row.web);
  const auto expected =
      row.app.empty() ? std::optional(policy::GuestDoubt::kNumbersUncertain) : std::nullopt;
  CHECK(scene.doubt(kApp) == expected);
  CHECK(scene.starts_at_once(kApp));
}

TEST_CASE("a VMM that plugs vCPUs in order numbers them for its guest, whatever its kernel") {
  Scene scene(1);
  scene.host.node.arguments(100, {"/opt/kata/bin/cloud-hypervisor", "--api-socket", "/run/x"});
  scene.run_containers({4, 5});
  CHECK(scene.doubt(kApp) == policy::GuestDoubt::kNumbersUncertain);
  vmm::MonitorFacts reported{.source = "cloud-hypervisor"};
  reported.boot = {.max_vcpus = 3, .kernel = "/x/vmlinux.container", .plugs_in_order = true};
  scene.host.line().set_monitor_facts("s1", reported);
  scene.advance();
  CHECK(scene.doubt(kApp) == policy::GuestDoubt::kVcpusMissing);
  CHECK(scene.writes().empty());
  scene.plug(1);
  scene.plug(2);
  CHECK(scene.last(kApp) == "1-2");
  CHECK(scene.last(kWeb) == "0");
  CHECK_FALSE(scene.doubt(kApp));
}

TEST_CASE("if every container may use every vCPU, the guest gets no update") {
  Scene scene;
  REQUIRE(scene.host.container("s1", kWeb, policy::CpuSet{0, 1, 2, 3}, false));
  scene.advance();
  CHECK(scene.view().report->by_kata);
  scene.plug(7);
  CHECK((scene.writes().empty() && scene.view().doubts.empty()));
}

TEST_CASE("a container unknown to kata-agent is requested again") {
  Scene scene;
  scene.server.peer.refusals[kApp] = ttrpc::Code::kInvalidArgument;
  scene.run_containers();
  const auto state = [&scene] { return scene.view().report->containers.front(); };
  CHECK(state().problem == policy::GuestProblem::kNotFound);
  CHECK(scene.host.verifier().verify().ok());
  scene.server.peer.refusals.clear();
  scene.run_for(800ms);
  CHECK(state().problem == policy::GuestProblem::kNone);
}

TEST_CASE("a busy kata-agent is reported as late, and not asked twice") {
  Scene scene;
  scene.advance();
  scene.server.hold();
  scene.run_containers();
  scene.run_for(1200ms);
  CHECK_FALSE(scene.view().connected);
  CHECK(scene.view().text == "no response from the agent in time");
  scene.server.go_on();
  scene.advance();
  CHECK(scene.view().connected);
  CHECK(scene.view().text == "kata-agent 4.1.0");
  CHECK(scene.view().current);
  CHECK(scene.last(kApp) == scene.own_vcpu());
  CHECK(scene.server.connections == 1);
  CHECK(scene.server.peer.updates.size() == 2);
}

TEST_CASE("a policy that forbids the call is reported, and the call not repeated") {
  Scene scene;
  scene.server.peer.refusals[kApp] = ttrpc::Code::kPermissionDenied;
  scene.run_containers();
  CHECK(scene.view().text.find("policy forbids") != std::string::npos);
  const int connections = scene.server.connections;
  scene.run_for(600ms);
  CHECK(scene.server.connections == connections);
}

TEST_CASE("CPU numbers of 8 and above are rejected if kata-agent drives systemd") {
  for (const bool init : {true, false}) {
    boost::asio::io_context io;
    tests::TestClock clock;
    const tests::TempDir files;
    KataServer server(io, files.path() / "agent");
    server.peer.init_daemon = init;
    const guest::Address address{.kind = guest::Address::Kind::kUnix,
                                 .path = (files.path() / "agent").string()};
    guest::KataLink link(io, clock, address, true, {});
    link.place({{"high", {7, 8}}, {"low", {7}}}, false);
    tests::run_for(io, clock, 200ms);
    const auto expected = init ? Updates{{"high", "7-8"}, {"low", "7"}} : Updates{{"low", "7"}};
    CHECK(server.peer.updates == expected);
    CHECK(link.states().front().problem ==
          (init ? policy::GuestProblem::kNone : policy::GuestProblem::kRefused));
    CHECK(link.is_current());
  }
}

TEST_CASE(
    "containers that lose CPUs are updated before those that get them, and all again on request") {
  boost::asio::io_context io;
  tests::TestClock clock;
  const tests::TempDir files;
  KataServer server(io, files.path() / "agent");
  const guest::Address address{.kind = guest::Address::Kind::kUnix,
                               .path = (files.path() / "agent").string()};
  guest::KataLink link(io, clock, address, false, {});
  link.place({{"a", {0}}, {"b", {1, 2}}}, false);
  tests::run_for(io, clock, 200ms);
  server.peer.updates.clear();
  link.place({{"a", {0, 1}}, {"b", {2}}}, false);
  tests::run_for(io, clock, 200ms);
  CHECK(server.peer.updates == Updates{{"b", "2"}, {"a", "0-1"}});
  server.peer.updates.clear();
  link.place({{"a", {0, 1}}, {"b", {2}}}, true);
  tests::run_for(io, clock, 200ms);
  CHECK(server.peer.updates.size() == 2);
}

TEST_CASE("a guest is searched again when the VMM replaces its shim") {
  Scene scene(3, "");
  scene.host.node.arguments(100, {"/usr/bin/containerd-shim-kata-v2"});
  scene.run_containers();
  scene.host.boot_vm(200, 3);
  scene.host.node.arguments(200, {"/usr/bin/qemu-system-x86_64", "-smp", "3,maxcpus=8"});
  policy::ledger::PodSeen pod;
  pod.id = "s1";
  pod.vmm = tests::process_id(200);
  REQUIRE(scene.host.requests().submit({policy::ledger::Source::kApi, pod}));
  scene.advance();
  CHECK(scene.view().text == "kata-agent 4.1.0");
  CHECK(scene.last(kApp) == scene.own_vcpu());
}

TEST_CASE("after a guest missed a start, others of its kernel are not waited for") {
  Scene scene(3, "6.12.48");
  scene.boot_pod("s2", 200, 3, "6.12.48");
  scene.advance();
  REQUIRE(scene.host.line().node().view("s2")->guest->connected);
  scene.server.hold();
  REQUIRE(scene.host.container("s1", kApp, policy::CpuSet{5}, true));
  REQUIRE(scene.host.container("s2", kWeb, policy::CpuSet{6}, true));
  CHECK_FALSE(scene.starts_at_once(kApp));
  scene.run_for(guests::HeldStarts::kBudget);
  CHECK(scene.warnings() == 1);
  CHECK(scene.starts_at_once(kWeb, "s2"));
  CHECK(scene.warnings() == 1);

  scene.server.go_on();
  scene.advance();
  scene.server.hold();
  const std::string next(64, 'c');
  REQUIRE(scene.host.container("s2", next, policy::CpuSet{7}, true));
  CHECK_FALSE(scene.starts_at_once(next, "s2"));
}

TEST_CASE("uncertain numbers of a kernel are logged once for all its guests") {
  Scene scene;
  scene.boot_pod("s2", 200, 3, "");
  scene.advance();
  REQUIRE(scene.host.container("s1", kApp, policy::CpuSet{5}, true));
  REQUIRE(scene.host.container("s2", kWeb, policy::CpuSet{6}, true));
  scene.advance();
  scene.plug(7);
  CHECK(scene.warnings() == 1);
  scene.host.plug(200, 7);
  scene.host.line().reconcile_all();
  scene.advance();
  CHECK(scene.host.line().node().view("s2")->guest->doubts.at(kWeb) ==
        policy::GuestDoubt::kNumbersUncertain);
  CHECK(scene.warnings() == 1);
  CHECK(scene.starts_at_once(kWeb, "s2"));
}

TEST_CASE("a policy of an image is logged once for all its guests, and each one is asked") {
  Scene scene;
  scene.boot_pod("s2", 200, 3, "");
  scene.boot_pod("s3", 300, 3, "", "/x/other.initrd");
  const std::string other(64, 'c');
  for (const std::string& id : {kApp, kWeb, other}) {
    scene.server.peer.refusals[id] = ttrpc::Code::kPermissionDenied;
  }
  scene.advance();
  REQUIRE(scene.host.container("s1", kApp, policy::CpuSet{5}, true));
  REQUIRE(scene.host.container("s2", kWeb, policy::CpuSet{6}, true));
  scene.run_for(12s);
  for (const char* id : {"s1", "s2"}) {
    const board::GuestView& view = *scene.host.line().node().view(id)->guest;
    CHECK(view.text.find("policy forbids") != std::string::npos);
  }
  CHECK(scene.warnings() == 1);
  REQUIRE(scene.host.container("s3", other, policy::CpuSet{7}, true));
  scene.run_for(12s);
  CHECK(scene.warnings() == 2);
}

TEST_CASE("the loss of kata-agent is logged, but not if its VM ends") {
  Scene scene;
  scene.run_containers();
  REQUIRE(scene.view().connected);
  SECTION("it is gone") {
    scene.server.stop();
    scene.run_for(9s);
    CHECK_FALSE(scene.view().connected);
    CHECK(scene.warnings() == 0);
    scene.run_for(2s);
    CHECK(scene.warnings() == 1);
    scene.run_for(12s);
    CHECK(scene.warnings() == 1);
  }
  SECTION("its VM ends") {
    scene.server.stop();
    scene.run_for(1s);
    REQUIRE(scene.host.remove("s1"));
    scene.run_for(12s);
    CHECK(scene.warnings() == 0);
  }
}
