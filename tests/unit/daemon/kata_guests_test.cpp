// Sandboxes whose guests have no agent but Kata's, played by a script behind a unix socket.
#include <boost/asio/buffer.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <list>
#include <utility>

#include "affinity/daemon/guests.hpp"
#include "tests/catch.hpp"
#include "tests/unit/engine/scene.hpp"
#include "tests/unit/guest-agent/kata_peer.hpp"

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

policy::Settings through_kata() {
  policy::Settings settings;
  settings.guest.agent = policy::GuestAgent::kKataAgent;
  return settings;
}

/// A VM that was started with 3 vCPUs, an exclusive container and a shared one.
struct Scene {
  explicit Scene(const std::string& smp = "3,maxcpus=8") : host(8, {.settings = through_kata()}) {
    host.boot_vm(100, 3);
    host.node.arguments(100, {"/usr/bin/qemu-system-x86_64", "-smp", smp});
    policy::PodSeen pod;
    pod.id = "s1";
    pod.vmm = tests::process_id(100);
    pod.agent = "unix://" + (host_dir.path() / "agent").string();
    REQUIRE(host.engine().submit({policy::Source::kApi, pod}));
  }

  void settle() { io.run_for(300ms); }
  void run_containers() {
    REQUIRE(host.container("s1", kWeb, policy::CpuSet{0, 1, 2, 3}, false));
    REQUIRE(host.container("s1", kApp, policy::CpuSet{5}, true));
    settle();
  }
  const engine::GuestView& view() { return *host.engine().view("s1")->guest; }
  /// What a container was told last.
  std::string last(const std::string& container) {
    std::string cpus;
    for (const auto& [id, set] : server.peer.updates) {
      if (id == container) cpus = set;
    }
    return cpus;
  }
  std::string own_vcpu() {
    const auto& plan = host.engine().view("s1")->plan;
    const auto vcpu =
        std::ranges::find(plan.vcpus, policy::VcpuRole::kDedicated, &policy::VcpuPlan::role);
    return std::to_string(vcpu->index);
  }

  tests::TempDir host_dir;
  tests::EngineScene host;
  boost::asio::io_context io;
  log::Log log{log::Level::kError};
  KataServer server{io, host_dir.path() / "agent"};
  vmm::Roots roots{host.node.proc(), host.node.debugfs(), host.node.cgroup()};
  daemon::Guests guests{io, host.engine(), roots, host_dir.path(), log, host.clock};
};

}  // namespace

TEST_CASE("kata-agent is told the guest CPUs of containers where their numbers are certain") {
  Scene scene;
  scene.run_containers();
  REQUIRE(scene.view().connected);
  CHECK(scene.view().text == "kata-agent 4.1.0");
  CHECK(scene.last(kApp) == scene.own_vcpu());
  CHECK(scene.last(kWeb).find(scene.own_vcpu()) == std::string::npos);
  CHECK(scene.view().current);
  CHECK(scene.host.engine().verify().findings.empty());

  SECTION("what has not changed is not told again") {
    const auto before = scene.server.peer.updates.size();
    scene.host.engine().reconcile_all();
    scene.settle();
    CHECK(scene.server.peer.updates.size() == before);
  }
  SECTION("a plugged vCPU makes the numbers uncertain, and containers are left alone") {
    const auto before = scene.server.peer.updates.size();
    scene.host.plug(100, 7);
    scene.host.engine().reconcile_all();
    scene.settle();
    CHECK(scene.server.peer.updates.size() == before);
    CHECK(scene.view().text.find("not certain") != std::string::npos);
    CHECK_FALSE(scene.view().report);
    scene.host.node.end_thread(100, 117);
    scene.host.engine().reconcile_all();
    scene.settle();
    CHECK(scene.view().text == "kata-agent 4.1.0");
    CHECK(scene.server.peer.updates.size() > before);
  }
  SECTION("a release writes all CPUs: a cpuset cannot be cleared") {
    REQUIRE(scene.host.engine().release("s1"));
    scene.settle();
    CHECK(scene.last(kApp) == "0-2");
    CHECK(scene.last(kWeb) == "0-2");
    CHECK(scene.host.engine().verify().findings.empty());
  }
  SECTION("and so does the sandbox's end") {
    REQUIRE(scene.host.remove("s1"));
    scene.settle();
    CHECK(scene.last(kApp) == "0-2");
  }
}

TEST_CASE("a container that kata-agent does not have yet is asked for again") {
  Scene scene;
  scene.server.peer.refusals[kApp] = ttrpc::Code::kInvalidArgument;
  scene.run_containers();
  const auto state = [&scene] { return scene.view().report->containers.front(); };
  CHECK(state().problem == policy::GuestProblem::kNotFound);
  CHECK(scene.host.engine().verify().findings.empty());
  scene.server.peer.refusals.clear();
  scene.io.run_for(800ms);
  CHECK(state().problem == policy::GuestProblem::kNone);
}

TEST_CASE("a kata-agent that is busy is said to be late, and not asked twice") {
  Scene scene;
  scene.settle();
  scene.server.hold();
  scene.run_containers();
  scene.io.run_for(1200ms);
  CHECK_FALSE(scene.view().connected);
  CHECK(scene.view().text == "the agent does not answer in time");
  scene.server.go_on();
  scene.settle();
  CHECK(scene.view().connected);
  CHECK(scene.view().text == "kata-agent 4.1.0");
  CHECK(scene.view().current);
  CHECK(scene.last(kApp) == scene.own_vcpu());
  CHECK(scene.server.connections == 1);
  CHECK(scene.server.peer.updates.size() == 2);
}

TEST_CASE("a policy that forbids it is reported, and not tried again") {
  Scene scene;
  scene.server.peer.refusals[kApp] = ttrpc::Code::kPermissionDenied;
  scene.run_containers();
  CHECK(scene.view().text.find("policy forbids") != std::string::npos);
  const int connections = scene.server.connections;
  scene.io.run_for(600ms);
  CHECK(scene.server.connections == connections);
}

TEST_CASE("CPU numbers of 8 and above are refused where kata-agent drives systemd") {
  for (const bool init : {true, false}) {
    boost::asio::io_context io;
    const tests::TempDir files;
    KataServer server(io, files.path() / "agent");
    server.peer.init_daemon = init;
    const guest::Address address{.kind = guest::Address::Kind::kUnix,
                                 .path = (files.path() / "agent").string()};
    guest::KataLink link(io, address, true, {});
    link.place({{"high", {7, 8}}, {"low", {7}}}, false);
    io.run_for(200ms);
    const auto expected = init ? Updates{{"high", "7-8"}, {"low", "7"}} : Updates{{"low", "7"}};
    CHECK(server.peer.updates == expected);
    CHECK(link.states().front().problem ==
          (init ? policy::GuestProblem::kNone : policy::GuestProblem::kRefused));
    CHECK(link.is_current());
  }
}

TEST_CASE("who loses CPUs is told before who gets them, and all is told again when asked") {
  boost::asio::io_context io;
  const tests::TempDir files;
  KataServer server(io, files.path() / "agent");
  const guest::Address address{.kind = guest::Address::Kind::kUnix,
                               .path = (files.path() / "agent").string()};
  guest::KataLink link(io, address, false, {});
  link.place({{"a", {0}}, {"b", {1, 2}}}, false);
  io.run_for(200ms);
  server.peer.updates.clear();
  link.place({{"a", {0, 1}}, {"b", {2}}}, false);
  io.run_for(200ms);
  CHECK(server.peer.updates == Updates{{"b", "2"}, {"a", "0-1"}});
  server.peer.updates.clear();
  link.place({{"a", {0, 1}}, {"b", {2}}}, true);
  io.run_for(200ms);
  CHECK(server.peer.updates.size() == 2);
}

TEST_CASE("a guest is looked for again when the VMM takes the place of its shim") {
  Scene scene("not told");
  scene.run_containers();
  CHECK(scene.view().text.find("not certain") != std::string::npos);
  scene.host.boot_vm(200, 3);
  scene.host.node.arguments(200, {"/usr/bin/qemu-system-x86_64", "-smp", "3,maxcpus=8"});
  policy::PodSeen pod;
  pod.id = "s1";
  pod.vmm = tests::process_id(200);
  REQUIRE(scene.host.engine().submit({policy::Source::kApi, pod}));
  scene.settle();
  CHECK(scene.view().text == "kata-agent 4.1.0");
  CHECK(scene.last(kApp) == scene.own_vcpu());
}
