// SPDX-License-Identifier: Apache-2.0
// The client of kata-affinity-helper, with peers that answer, and with peers that do not.
#include "affinity/quiet/client.hpp"

#include <optional>

#include "tests/catch.hpp"
#include "tests/run_loop.hpp"
#include "tests/scripted_server.hpp"
#include "tests/temp_dir.hpp"
#include "tests/unit/quiet/helper.hpp"

using namespace ka;
using namespace std::chrono_literals;
using base::ErrorCode;
using policy::CpuSet;

namespace {

/// A client in an io_context of its own, and what it was answered.
template <typename Clock>
struct Bench {
  explicit Bench(quiet::ClientOptions options = {}) {
    options.socket = socket();
    client.emplace(io, clock, options, [this](const policy::QuietRequest& sent, auto answer) {
      results.push_back(
          policy::format_list(sent.cpus) + ": " +
          (answer ? "held " + policy::format_list(answer->cpus) : answer.error().message));
    });
  }

  std::filesystem::path socket() const { return dir.path() / "helper.sock"; }

  tests::TempDir dir;
  boost::asio::io_context io{1};
  Clock clock;
  std::vector<std::string> results;
  std::optional<quiet::Client> client;
};

void serve(int peer, const std::string& text) {
  char request[512];
  if (::read(peer, request, sizeof(request)) <= 0) return;
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t now = ::send(peer, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (now <= 0) return;
    sent += static_cast<std::size_t>(now);
  }
  if (text.empty()) tests::wait_for_end(peer);
}

std::string response(int status, const std::string& body) {
  return "HTTP/1.1 " + std::to_string(status) +
         " \r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

TEST_CASE("one request is in flight, and the newest wins") {
  Bench<tests::TestClock> bench;
  tests::FakeHelper helper(bench.io, bench.clock, bench.socket());
  std::function<void(http::Response)> respond;
  helper.answer = [&](const http::Request&) {
    http::Response later;
    later.later = [&](auto done) { respond = std::move(done); };
    return later;
  };
  bench.client->request({{1}});
  tests::run_ready(bench.io);
  bench.client->request({{2}});
  bench.client->request({{3}});
  tests::run_ready(bench.io);
  CHECK(helper.requested() == std::vector<std::string>{"1"});
  respond({.body = tests::quiet_document("1")});
  tests::run_ready(bench.io);
  respond({.body = tests::quiet_document("3")});
  tests::run_ready(bench.io);
  CHECK(helper.requested() == std::vector<std::string>{"1", "3"});
  CHECK(bench.results == std::vector<std::string>{"1: held 1", "3: held 3"});
}

TEST_CASE("a refusal is an answer: it is not asked again") {
  Bench<tests::TestClock> bench;
  tests::FakeHelper helper(bench.io, bench.clock, bench.socket());
  helper.answer = [](const http::Request&) {
    return http::error_response(400, "CPU 9 is not online");
  };
  bench.client->request({{9}});
  tests::run_for(bench.io, bench.clock, 2min, 1s);
  CHECK(bench.results == std::vector<std::string>{"9: CPU 9 is not online"});
  CHECK(helper.requests.size() == 1);
}

TEST_CASE(
    "while the socket is away it is asked with growing pauses, and requests do not cut them") {
  Bench<tests::TestClock> bench;
  bench.client->request({{2}});
  tests::run_ready(bench.io);
  bench.client->request({{2, 3}});
  tests::run_for(bench.io, bench.clock, 6900ms, 100ms);
  CHECK(bench.results.size() == 3);  // at 0 s, 1 s and 3 s
  CHECK(bench.results[0].starts_with("2: cannot connect to "));
  CHECK(bench.results[2].starts_with("2-3: cannot connect to "));
  tests::FakeHelper helper(bench.io, bench.clock, bench.socket());
  tests::run_for(bench.io, bench.clock, 200ms, 100ms);
  CHECK(bench.results.back() == "2-3: held 2-3");
  CHECK(helper.requested() == std::vector<std::string>{"2-3"});
}

TEST_CASE("a peer that answers badly, too much, in part or not at all is asked again") {
  Bench<base::Clock> bench({.deadline = 200ms, .first_pause = 1ms, .last_pause = 1ms});
  const std::string good = tests::quiet_document("2");
  tests::ScriptedServer server(
      bench.socket(),
      {response(500, "{}"), response(200, "{}"), "no HTTP\r\n\r\n", "HTTP/1.1 200 \r\nConten",
       response(200, std::string(2 << 20, ' ')), "", response(200, good)},
      serve);
  bench.client->request({{2}});
  tests::run_until(bench.io,
                   [&] { return !bench.results.empty() && bench.results.back() == "2: held 2"; });
  REQUIRE(bench.results.size() == 7);
  CHECK(bench.results[0].ends_with("helper.sock: status 500"));
  CHECK(bench.results[1].find("cpus") != std::string::npos);
  for (std::size_t i = 2; i < 6; ++i)
    CHECK(bench.results[i].starts_with("2: " + bench.socket().string()));
  CHECK(bench.results[5].ends_with("no response in time"));
}
