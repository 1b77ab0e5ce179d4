// SPDX-License-Identifier: Apache-2.0
// Sandboxes whose guests have the real agent, on a tree of files, behind a unix socket.
#include "affinity/guests/guests.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <list>
#include <optional>

#include "guest-agent/agent/session.hpp"
#include "tests/catch.hpp"
#include "tests/run_loop.hpp"
#include "tests/unit/guest-agent/guest_scene.hpp"
#include "tests/unit/line/scene.hpp"

using namespace ka;
using namespace std::chrono_literals;
using Protocol = boost::asio::local::stream_protocol;

namespace {

/// The agent as a program would serve it. One that is mute reads, and never answers.
class AgentServer {
 public:
  AgentServer(boost::asio::io_context& io, const std::filesystem::path& path, agent::Agent& agent)
      : acceptor_(io, Protocol::endpoint(path.string())), agent_(agent) {
    accept();
  }

  void cgroups_changed() {
    agent_.cgroups_changed();
    for (Client& client : clients_) client.report_all();
  }
  bool mute = false;

 private:
  struct Client {
    Client(Protocol::socket connected, agent::Agent& agent)
        : socket(std::move(connected)), session(agent) {}
    void report_all() {
      std::string out;
      session.notify(out);
      send(out);
    }
    void send(const std::string& out) {
      boost::system::error_code ignored;
      boost::asio::write(socket, boost::asio::buffer(out), ignored);
    }
    Protocol::socket socket;
    agent::Session session;
    std::array<char, 4096> buffer{};
  };

  void accept() {
    acceptor_.async_accept([this](boost::system::error_code error, Protocol::socket socket) {
      if (error) return;
      read(clients_.emplace_back(std::move(socket), agent_));
      accept();
    });
  }

  void read(Client& client) {
    client.socket.async_read_some(
        boost::asio::buffer(client.buffer),
        [this, &client](boost::system::error_code error, std::size_t size) {
          if (error) return;
          std::string out;
          if (!mute && client.session.receive({client.buffer.data(), size}, out)) client.send(out);
          read(client);
        });
  }

  Protocol::acceptor acceptor_;
  agent::Agent& agent_;
  std::list<Client> clients_;
};

const std::string kApp(64, 'a');

/// A VM with 3 vCPUs on a machine of 8 CPUs, and a container that owns CPU 5.
struct Scene {
  Scene() {
    guests.emplace(io, host.line(), host.board(), roots, log, host.clock);
    guest.cpus({0, 2, 1});
    agent.cpus_changed();
    host.boot_vm(100, 3);
    policy::ledger::PodSeen pod;
    pod.id = "s1";
    pod.vmm = tests::process_id(100);
    pod.agent = "unix://" + agent_path();
    REQUIRE(host.requests().submit({policy::ledger::Source::kApi, pod}));
  }

  void restart() {
    guests.reset();
    host.start();
    host.line().adopt();
    guests.emplace(io, host.line(), host.board(), roots, log, host.clock);
  }

  void own(int cpu) { REQUIRE(host.container("s1", kApp, policy::CpuSet{cpu}, true)); }
  std::string agent_path() const { return (host_dir.path() / "agent").string(); }
  const board::GuestView& view() { return *host.line().node().view("s1")->guest; }
  std::string cpuset() { return guest.read("cgroup/pods/" + kApp + "/cpuset.cpus"); }
  void run_for(std::chrono::milliseconds time) { tests::run_for(io, host.clock, time); }
  /// Until the start of the container went on; absent: it did not.
  std::optional<base::Clock::Time::duration> start() {
    const auto began = host.clock.now();
    std::optional<base::Clock::Time::duration> elapsed;
    guests->await("s1", kApp, [&] { elapsed = host.clock.now() - began; });
    if (!elapsed) run_for(400ms);
    return elapsed;
  }

  /// Before anything is waited for.
  bool starts_at_once() {
    bool went_on = false;
    guests->await("s1", kApp, [&went_on] { went_on = true; });
    const bool at_once = went_on;
    if (!at_once) run_for(400ms);
    return at_once;
  }

  tests::TempDir host_dir;
  tests::GuestScene guest;
  tests::LineScene host;
  boost::asio::io_context io;
  log::Log log{log::Level::kError, host.clock};
  agent::Agent agent{guest.roots(), guest.threads};
  AgentServer server{io, host_dir.path() / "agent", agent};
  vmm::Roots roots{.proc = host.node.proc(),
                   .debugfs = host.node.debugfs(),
                   .cgroup = host.node.cgroup(),
                   .run = host_dir.path()};
  std::optional<guests::Guests> guests;
};

}  // namespace

TEST_CASE("a container's plan reaches its guest, by APIC id") {
  Scene scene;
  scene.guest.cgroup("pods/" + kApp);
  scene.own(5);
  scene.run_for(200ms);
  REQUIRE(scene.view().connected);
  CHECK(scene.view().current);
  const auto& plan = scene.host.line().node().view("s1")->plan;
  const auto vcpu = std::ranges::find(plan.vcpus, policy::plan::VcpuRole::kDedicated,
                                      &policy::plan::VcpuPlan::role);
  const int guest_cpu = vcpu->index == 0 ? 0 : 3 - vcpu->index;  // APIC ids 0, 2, 1
  CHECK(scene.cpuset() == std::to_string(guest_cpu));
  CHECK(scene.host.verifier().verify().ok());

  SECTION("and is withdrawn on release") {
    REQUIRE(scene.host.requests().release("s1"));
    scene.run_for(200ms);
    CHECK(scene.cpuset().empty());
  }
  SECTION("and when it is removed") {
    REQUIRE(scene.host.remove("s1"));
    scene.run_for(300ms);
    CHECK(scene.cpuset().empty());
  }
  SECTION("and verify reports a missing agent if the configuration requires one") {
    auto silent = scene.view();
    silent.current = false;
    scene.host.board().set_guest("s1", silent);
    CHECK(scene.host.verifier().verify().ok());
    line::Options options = tests::at_home();
    options.settings.guest.agent = policy::plan::GuestAgent::kOurs;
    scene.server.mute = true;
    scene.host.line().configure(options);
    const auto report = scene.host.verifier().verify();
    CHECK(report.verdict() == line::Verdict::kDegraded);
    CHECK(std::ranges::count(report.findings, "guest", &line::Finding::invariant) == 1);
  }
  SECTION("and verify reports a guest that placed it elsewhere") {
    auto lying = scene.view();
    lying.report->containers[0].actual = {0, 1, 2};
    scene.host.board().set_guest("s1", lying);
    const auto findings = scene.host.broken();
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].invariant == "I4");
  }
}

TEST_CASE("a guest stays placed when a source reports its VM of another pod than a state file") {
  Scene scene;
  scene.guest.cgroup("pods/" + kApp);
  scene.own(5);
  scene.run_for(200ms);
  scene.restart();
  scene.run_for(200ms);
  REQUIRE(scene.view().connected);
  scene.host.line().handle(
      {{policy::ledger::Source::kNri,
        policy::ledger::PodSeen{
            .id = "s2", .vmm = tests::process_id(100), .agent = "unix://" + scene.agent_path()}}});
  REQUIRE(scene.host.container("s2", kApp, {6}, true));
  scene.run_for(2s);
  CHECK_FALSE(scene.host.line().node().view("s1"));
  CHECK(scene.host.line().node().view("s2")->guest->current);
  CHECK_FALSE(scene.cpuset().empty());
}

TEST_CASE("the idle vCPUs of a realtime sandbox are to poll, and verify says where they do not") {
  Scene scene;
  line::Options options = tests::at_home();
  options.settings.grade = policy::plan::Grade::kRealtime;
  scene.host.line().configure(options);
  scene.guest.cgroup("pods/" + kApp);
  scene.own(5);
  scene.run_for(200ms);
  CHECK_FALSE(scene.view().spec.halt_poll);
  board::QuietView quiet;
  quiet.sandboxes["s1"] = std::nullopt;
  scene.host.board().set_quiet(quiet);
  scene.host.board().set_partitions({{"s1", {policy::CpuSet{6}, {}, {}, {}}}});
  scene.own(6);
  scene.run_for(200ms);
  REQUIRE(scene.view().current);
  CHECK(scene.view().spec.halt_poll);

  const auto notes = [&] {
    const auto report = scene.host.verifier().verify();
    return std::ranges::count(report.findings, "no-halt-poll", &line::Finding::reason);
  };
  CHECK(notes() == 1);
  auto polling = scene.view();
  polling.report->idle = policy::GuestIdle::kPolling;
  scene.host.board().set_guest("s1", polling);
  CHECK(notes() == 0);

  scene.host.board().set_partitions({});
  scene.own(7);
  scene.run_for(200ms);
  CHECK_FALSE(scene.view().spec.halt_poll);
}

TEST_CASE("a container whose pod requests it has no CFS quota in its guest, either") {
  Scene scene;
  line::Options options = tests::at_home();
  options.settings.allow_tuning = {policy::TuningKind::kQuota};
  options.quiet.tuning_by_annotation = true;
  scene.host.line().configure(options);
  scene.guest.cgroup("pods/" + kApp);
  const std::string file = "cgroup/pods/" + kApp + "/cpu.max";
  scene.guest.files.write(file, "100000 100000\n");
  scene.own(5);
  scene.run_for(200ms);
  CHECK(scene.guest.read(file) == "100000 100000");
  const auto request = [&](const char* value) {
    policy::ledger::PodSeen pod{.id = "s1"};
    pod.annotations = policy::Annotations{{"cpu-quota.crio.io", value}};
    scene.host.line().handle({policy::ledger::Source::kNri, pod});
    scene.run_for(200ms);
  };
  request("disable");
  CHECK(scene.guest.read(file) == "max 100000");
  request("enable");
  CHECK(scene.guest.read(file) == "100000 100000");
}

TEST_CASE("verify says why interrupts of a quiet sandbox's guest may come to its vCPUs") {
  Scene scene;
  line::Options options = tests::at_home();
  options.settings.grade = policy::plan::Grade::kQuiet;
  scene.host.line().configure(options);
  scene.guest.cgroup("pods/" + kApp);
  scene.own(5);
  scene.run_for(200ms);
  const auto why = [&] {
    for (const line::Finding& one : scene.host.verifier().verify().findings) {
      if (one.reason == "guest-not-quiet") return one.text.substr(one.text.rfind(": ") + 2);
    }
    return std::string();
  };
  CHECK(why().empty());
  board::QuietView quiet;
  quiet.sandboxes["s1"] = std::nullopt;
  scene.host.board().set_quiet(quiet);
  REQUIRE(scene.view().connected);
  CHECK(why().empty());
  auto view = scene.view();
  view.connected = false;
  scene.host.board().set_guest("s1", view);
  CHECK(why() == "its agent does not respond");
  view.connected = view.writes.by_kata = true;
  scene.host.board().set_guest("s1", view);
  CHECK(why() == "kata-agent does not move them");
  options.settings.guest.move_interrupts = false;
  scene.host.line().configure(options);
  CHECK(why() == "guest_irqs is \"none\"");
  options.settings.guest.agent = policy::plan::GuestAgent::kNone;
  scene.host.line().configure(options);
  CHECK(why() == "guest is \"none\"");
}

TEST_CASE("if only a mask is known, the guest's containers may use all of it") {
  Scene scene;
  scene.guest.cgroup("pods/" + kApp);
  REQUIRE(
      scene.host.container("s1", std::string(policy::kSandboxMask), policy::CpuSet{4, 5}, true));
  scene.run_for(200ms);
  REQUIRE(scene.view().connected);
  CHECK(scene.view().current);
  CHECK(scene.view().report->containers.empty());
  CHECK(scene.cpuset() == "0-2");
  CHECK(scene.host.verifier().verify().ok());
}

TEST_CASE("a guest is up while its agent responds, and down after") {
  Scene scene;
  const auto count = [&](const char* kind) {
    return std::ranges::count(scene.host.notified, std::string(kind));
  };
  scene.own(5);
  CHECK(count("guest-down") == 0);
  scene.run_for(200ms);
  CHECK(count("guest-up") == 1);
  scene.server.mute = true;
  scene.own(6);
  scene.run_for(2s);
  CHECK(count("guest-down") == 1);
}

TEST_CASE("a guest's reaction time is measured from the plan") {
  Scene scene;
  scene.guest.cgroup("pods/" + kApp);
  scene.own(5);
  scene.run_for(200ms);
  REQUIRE(scene.view().connected);
  const board::Counters& counters = scene.host.board().counters();
  CHECK(scene.view().reaction == 0ns);  // it was not there yet

  scene.own(6);
  scene.host.clock.advance(2s);
  scene.run_for(200ms);
  CHECK(scene.view().reaction >= 2s);
  CHECK(scene.view().reaction < 3s);
  CHECK(counters.guest_reactions.sum >= 2);
}

TEST_CASE("a container's start waits for its guest, up to the limit") {
  Scene scene;
  scene.guest.cgroup("pods");
  scene.own(5);
  scene.run_for(200ms);
  REQUIRE(scene.view().connected);

  SECTION("with the cgroup present: it continues after the guest's response") {
    scene.guest.cgroup("pods/" + kApp);
    scene.server.cgroups_changed();
    const auto elapsed = scene.start();
    REQUIRE(elapsed);
    CHECK(*elapsed < 150ms);
    CHECK_FALSE(scene.cpuset().empty());
  }
  SECTION("with a silent guest: it continues late, and the guest is not waited for again") {
    scene.server.mute = true;
    CHECK(scene.start() == guests::HeldStarts::kBudget);
    CHECK(scene.starts_at_once());
  }
  SECTION("with a stalled daemon: the guest is waited for again") {
    scene.guest.cgroup("pods/" + kApp);
    bool went_on = false;
    scene.guests->await("s1", kApp, [&went_on] { went_on = true; });
    REQUIRE_FALSE(went_on);
    scene.server.cgroups_changed();
    scene.host.clock.advance(300ms);
    tests::run_ready(scene.io);
    CHECK(went_on);
    scene.server.mute = true;
    scene.own(6);
    CHECK(scene.start() == guests::HeldStarts::kBudget);
  }
}

TEST_CASE("a start does not wait for a guest that has no agent") {
  Scene scene;
  CHECK(scene.starts_at_once());
  scene.guests->await("unknown", kApp, [] {});
}
