// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/host/link.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <list>

#include "base/ttrpc/envelope.hpp"
#include "guest-agent/host/agent_url.hpp"
#include "tests/catch.hpp"
#include "tests/run_loop.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using namespace std::chrono_literals;
using Protocol = boost::asio::local::stream_protocol;

namespace {

/// Takes connections and says the same to each, after its first words.
class Peer {
 public:
  Peer(boost::asio::io_context& io, const std::filesystem::path& path, std::string words,
       bool hangs_up)
      : acceptor_(io, Protocol::endpoint(path.string())),
        words_(std::move(words)),
        hangs_up_(hangs_up) {
    accept();
  }
  int connections = 0;

  void say(const std::string& words) {
    boost::asio::write(held_.back(), boost::asio::buffer(words));
  }

 private:
  void accept() {
    acceptor_.async_accept([this](boost::system::error_code error, Protocol::socket socket) {
      if (error) return;
      ++connections;
      if (!hangs_up_) {
        boost::asio::write(socket, boost::asio::buffer(words_), error);
        held_.push_back(std::move(socket));
      }
      accept();
    });
  }

  Protocol::acceptor acceptor_;
  std::string words_;
  bool hangs_up_;
  std::list<Protocol::socket> held_;
};

constexpr guest::Timing kLittle{
    .deadline = 50ms, .first_pause = 10ms, .last_pause = 80ms, .between_watches = 5ms};

struct Scene {
  Scene(std::string words, bool hangs_up, guest::Timing timing = kLittle)
      : peer(io, temp.path() / "agent", std::move(words), hangs_up),
        link(io, clock, *guest::parse_address("unix://" + (temp.path() / "agent").string()),
             {[this](const std::string& program) { connected.push_back(program); },
              [this](const guest::News& one) { news.push_back(one); },
              [this](const std::string& reason) { lost.push_back(reason); }},
             timing) {}

  void run_for(std::chrono::milliseconds time) { tests::run_for(io, clock, time); }

  tests::TempDir temp;
  boost::asio::io_context io;
  tests::TestClock clock;
  std::vector<std::string> connected, lost;
  std::vector<guest::News> news;
  Peer peer;
  guest::Link link;
};

std::string hello() {
  const std::string payload = guest::encode(guest::Hello{.program = "agent"});
  return ttrpc::write_answer(1, {.code = ttrpc::Code::kOk, .message = {}, .payload = payload});
}

}  // namespace

TEST_CASE("an agent that does not respond times out, reported once") {
  Scene scene({}, false);
  scene.run_for(400ms);
  CHECK(scene.lost == std::vector<std::string>{"no response from the agent in time"});
  CHECK(scene.peer.connections >= 2);
}

TEST_CASE("an agent that closes connections is retried less and less often") {
  Scene scene({}, true);
  scene.run_for(500ms);
  CHECK(scene.lost.size() == 1);
  CHECK(scene.peer.connections >= 3);
  CHECK(scene.peer.connections <= 10);
}

TEST_CASE("1000 connections leave nothing behind, and cause one error message") {
  const auto descriptors = [] {
    const std::filesystem::directory_iterator open("/proc/self/fd");
    return std::distance(begin(open), end(open));
  };
  const tests::TempDir temp;
  boost::asio::io_context io;
  const tests::TestClock clock;
  Peer peer(io, temp.path() / "agent", {}, true);
  int reports = 0;
  const guest::Link link(io, clock,
                         *guest::parse_address("unix://" + (temp.path() / "agent").string()),
                         {{}, {}, [&reports](const std::string&) { ++reports; }},
                         {.first_pause = 0ms, .last_pause = 0ms});
  while (peer.connections < 10) io.run_one();
  const auto before = descriptors();
  while (peer.connections < 1000) io.run_one();
  CHECK(descriptors() <= before + 2);
  CHECK(reports <= 2);  // a socket may say in two ways that it was closed
}

TEST_CASE("an agent that sends garbage after hello is disconnected with a reason") {
  Scene scene(hello() + std::string(40, 'x'), false);
  scene.run_for(200ms);
  CHECK(scene.connected.empty());
  CHECK(scene.news.empty());
  REQUIRE_FALSE(scene.lost.empty());
}

TEST_CASE("an agent that leaves requests pending is degraded, not waited for") {
  Scene scene(hello(), false);
  scene.link.apply({});
  scene.run_for(150ms);
  REQUIRE_FALSE(scene.connected.empty());
  REQUIRE_FALSE(scene.lost.empty());
  CHECK(scene.lost[0] == "no response from the agent in time");
}

// All that came due while the daemon could not run comes at once, also what the first of it
// cancels.
TEST_CASE("after a stall the daemon ignores a connection that it gives up") {
  Scene scene(hello(), false, {.deadline = 50ms, .between_watches = 51ms});
  scene.link.apply({});
  while (scene.connected.empty()) scene.io.run_one();
  scene.clock.advance(150ms);
  tests::run_ready(scene.io);
  CHECK(scene.lost == std::vector<std::string>{"no response from the agent in time"});
}

TEST_CASE("after a stall the daemon accepts a response that arrived meanwhile") {
  Scene scene({}, false, {.deadline = 500ms});
  while (scene.peer.connections == 0) scene.io.run_one();
  tests::run_ready(scene.io);
  scene.peer.say(hello());
  scene.clock.advance(700ms);
  tests::run_ready(scene.io);
  CHECK(scene.connected == std::vector<std::string>{"agent"});
  CHECK(scene.lost.empty());
}

TEST_CASE("addresses are parsed strictly") {
  using guest::parse_address;
  CHECK(to_string(*parse_address("vsock://7")) == "vsock://7:1031");
  CHECK(to_string(*parse_address("hvsock:///run/vc/clh.sock:1024")) ==
        "hvsock:///run/vc/clh.sock:1024");
  CHECK(to_string(*parse_address("serial:///run/a:b")) == "serial:///run/a:b");
  for (const char* bad : {"", "vsock://", "vsock://2", "vsock://x", "vsock://3:0", "hvsock://a",
                          "unix://", "tcp://1.2.3.4:5", "vsock://4294967296"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_address(bad));
  }
}

TEST_CASE("an agent's address is read from the VMM's command line") {
  using guest::address_of;
  const auto vsock = address_of({"qemu-system-x86_64", "-device",
                                 "vhost-vsock-pci,disable-modern=true,vhostfd=3,id=vsock-1,"
                                 "guest-cid=2785,romfile="});
  REQUIRE(vsock);
  CHECK(to_string(*vsock) == "vsock://2785:1031");
  const auto serial = address_of({"-chardev", "socket,id=other,path=/run/other", "-chardev",
                                  "socket,id=ka,path=/run/ka.sock,server=on,wait=off", "-device",
                                  "virtserialport,chardev=ka,name=org.kata-affinity.agent.0"});
  REQUIRE(serial);
  CHECK(to_string(*serial) == "serial:///run/ka.sock");
  const auto hybrid = address_of({"cloud-hypervisor", "--vsock", "cid=3,socket=/run/v.sock"});
  REQUIRE(hybrid);
  CHECK(to_string(*hybrid) == "hvsock:///run/v.sock:1031");
  CHECK_FALSE(address_of({"qemu", "-device", "virtserialport,chardev=x,name=org.qemu.ga.0"}));
}

TEST_CASE("Kata's shim gives its agent's address, and ours follows from it") {
  CHECK(to_string(*guest::address_beside("vsock://33:1024")) == "vsock://33:1031");
  CHECK_FALSE(guest::address_beside("remote:///run/x"));
  CHECK(guest::management_sockets("../x", "/run").empty());

  const auto [answer, expected] = GENERATE(table<std::string, std::string>(
      {{"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\nvsock://33:1024", "vsock://33:1024"},
       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nf\r\nvsock://33:1024\r\n0\r\n\r\n",
        "vsock://33:1024"},
       {"HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\nvsock://33:1024\r\n", "vsock://33:1024"},
       {"HTTP/1.1 404 Not Found\r\nContent-Length: 15\r\n\r\nvsock://33:1024", ""},
       {"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nvsock://33:1024", ""}}));
  CAPTURE(answer);
  boost::asio::io_context io;
  tests::TempDir temp;
  std::filesystem::create_directories(temp.path() / "run/kata/s1");
  Peer shim(io, temp.path() / "run/kata/s1/shim-monitor.sock", answer, false);
  std::string found;
  tests::TestClock clock;
  guest::AgentUrl question(io, clock, guest::management_sockets("s1", temp.path() / "run"),
                           [&found](const std::string& url) { found = url; });
  tests::run_for(io, clock, 1200ms);
  CHECK(found == expected);
}
