// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/connections.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <vector>

#include "base/unix_socket.hpp"
#include "guest-agent/protocol/messages.hpp"
#include "tests/catch.hpp"
#include "tests/unit/guest-agent/guest_scene.hpp"

using namespace ka;

namespace {

struct Bench {
  Bench()
      : connections(
            loop, agent, [] {},
            [this](agent::Openings::Open open, const base::Error& failed) {
              left.push_back(std::move(open));
              failures.push_back(failed.message);
            }) {
    scene.cpus({0, 1, 2, 3});
    auto listener = base::listen_unix(path());
    REQUIRE(listener);
    REQUIRE(connections.listen(std::move(listener)));
  }

  std::filesystem::path path() const { return dir.path() / "agent.sock"; }

  base::Fd connect() {
    auto fd = base::connect_unix(path());
    REQUIRE(fd);
    turn();
    return std::move(*fd);
  }

  void turn() {
    for (int i = 0; i < 4; ++i) REQUIRE(loop.turn(agent::Loop::Wait::kNot));
  }

  /// Says hello; true when it is answered.
  bool greet(const base::Fd& fd, std::uint32_t stream) {
    const std::string hello = guest::encode(guest::Hello{.program = "test"});
    const std::string call = ttrpc::write_call(
        stream, {.service = guest::kService, .method = "Hello", .payload = hello});
    if (::send(fd.get(), call.data(), call.size(), MSG_NOSIGNAL) < 0) return false;
    turn();
    std::array<char, 4096> answer{};
    return ::recv(fd.get(), answer.data(), answer.size(), MSG_DONTWAIT) > 0;
  }

  bool is_closed(const base::Fd& fd) {
    std::array<char, 1> byte{};
    return ::recv(fd.get(), byte.data(), byte.size(), MSG_DONTWAIT) == 0;
  }

  tests::TempDir dir;
  tests::GuestScene scene;
  agent::Agent agent{scene.roots(), scene.threads};
  agent::Loop loop;
  std::vector<agent::Openings::Open> left;  ///< to be tried again
  std::vector<std::string> failures;        ///< why
  agent::Connections connections;
};

}  // namespace

TEST_CASE("a listener that can accept nobody is left alone until it can") {
  Bench bench;
  const auto host = base::connect_unix(bench.path());
  REQUIRE(host);
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const int next = ::fcntl(host->get(), F_DUPFD_CLOEXEC, 0);
  REQUIRE(::close(next) == 0);
  const rlimit none_left{static_cast<rlim_t>(next), limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none_left) == 0);
  bench.turn();
  const std::size_t left = bench.left.size();
  const auto again = left == 1 ? bench.left.front()() : base::Result<void>();
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  const std::string out_of_files = "cannot accept a connection: Too many open files";
  CHECK(bench.failures == std::vector{out_of_files});
  REQUIRE_FALSE(again);
  CHECK(again.error().message == out_of_files);
  CHECK_FALSE(bench.greet(*host, 1));
  REQUIRE(bench.left.front()());
  CHECK(bench.greet(*host, 3));
}

TEST_CASE("idle clients do not keep the host out") {
  Bench bench;
  std::vector<base::Fd> idle;
  for (std::size_t i = 0; i < agent::Connections::kMost; ++i) idle.push_back(bench.connect());
  for (const base::Fd& fd : idle) CHECK_FALSE(bench.is_closed(fd));
  const base::Fd host = bench.connect();
  CHECK(bench.greet(host, 1));
  CHECK(bench.is_closed(idle[0]));
  CHECK_FALSE(bench.is_closed(idle[1]));
  // Nor do they push out one that is there.
  for (int i = 0; i < 50; ++i) idle.push_back(bench.connect());
  CHECK(bench.greet(host, 3));
}

TEST_CASE("of hosts that said hello the longest idle one is dropped") {
  Bench bench;
  std::vector<base::Fd> hosts;
  for (std::size_t i = 0; i < agent::Connections::kMost; ++i) {
    hosts.push_back(bench.connect());
    REQUIRE(bench.greet(hosts.back(), 1));
  }
  REQUIRE(bench.greet(hosts[0], 3));
  const base::Fd next = bench.connect();
  CHECK(bench.greet(next, 1));
  CHECK(bench.is_closed(hosts[1]));
  CHECK_FALSE(bench.is_closed(hosts[0]));
}
