// SPDX-License-Identifier: Apache-2.0
// The HTTPS client against servers that are not what they should be.
#include "base/tls/client.hpp"

#include <string>
#include <vector>

#include "tests/tls_server.hpp"

using namespace ka;
using namespace std::chrono_literals;
using base::ErrorCode;
using tests::Certificate;
using tests::TlsAnswer;
using tests::TlsServer;

namespace {

const http::Request kGet{"GET", "/", ""};

struct Scene {
  Scene() { trusted.write(dir.path() / "ca.crt"); }

  tls::Server at(const TlsServer& server) const {
    return {"127.0.0.1", server.port(), dir.path() / "ca.crt"};
  }

  base::Result<http::Response> call(TlsAnswer answer) {
    const TlsServer server(trusted, {std::move(answer)});
    return tls::call(at(server), kGet, {}, 60s);
  }
  base::Result<http::Response> call_with(const Certificate& certificate) {
    const TlsServer server(certificate, {{tests::http_response("200 OK", "secret")}});
    auto response = tls::call(at(server), kGet, {.bearer = "token"}, 60s);
    requests = server.requests();
    return response;
  }
  base::Result<http::Response> stream_lines(TlsAnswer answer) {
    const TlsServer server(trusted, {std::move(answer)});
    return tls::stream_lines(at(server), kGet, {}, 60s, [this](std::string_view line) {
      lines.emplace_back(line);
      return lines.size() < most;
    });
  }

  tests::TempDir dir;
  Certificate trusted{"IP:127.0.0.1"};
  std::vector<std::string> lines, requests;
  std::size_t most = 100;
};

}  // namespace

TEST_CASE("a server whose certificate is good is asked, and its answer comes back", "[tls]") {
  Scene scene;
  CHECK(scene.call_with(scene.trusted)->body == "secret");
  REQUIRE(scene.requests.size() == 1);
  CHECK(scene.requests[0].find("Authorization: Bearer token\r\n") != std::string::npos);
}

TEST_CASE("a server that is not the one meant is sent nothing, least of all the token", "[tls]") {
  Scene scene;
  const Certificate unknown("IP:127.0.0.1");
  const auto refused = scene.call_with(unknown);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kPermission);
  CHECK(refused.error().message.find("certificate of 127.0.0.1:") == 0);
  CHECK(scene.requests.empty());
  for (const auto& [names, seconds] :
       {std::pair{"IP:127.0.0.2", 3600L}, {"DNS:localhost", 3600L}, {"IP:127.0.0.1", -60L}}) {
    CAPTURE(names);
    const Certificate wrong(names, seconds);
    wrong.write(scene.dir.path() / "ca.crt");
    CHECK(scene.call_with(wrong).error().code == ErrorCode::kPermission);
    CHECK(scene.requests.empty());
  }
}

TEST_CASE("a server is known by its name where it has no address", "[tls]") {
  Scene scene;
  const Certificate named("DNS:localhost");
  named.write(scene.dir.path() / "ca.crt");
  const TlsServer server(named, {{tests::http_response("200 OK", "it")}});
  const tls::Server by_name{"localhost", server.port(), scene.dir.path() / "ca.crt"};
  CHECK(tls::call(by_name, kGet, {}, 60s)->body == "it");
}

TEST_CASE("no authorities, no server, or one with an old TLS: an error that says so", "[tls]") {
  Scene scene;
  CHECK(scene.call({.text = "x", .is_old_tls = true}).error().code == ErrorCode::kUnavailable);
  std::string port;
  {
    const TlsServer server(scene.trusted, {});
    port = server.port();
    const tls::Server without{"127.0.0.1", port, scene.dir.path() / "none.crt"};
    CHECK(tls::call(without, kGet, {}, 60s).error().code == ErrorCode::kInvalid);
  }
  const tls::Server gone{"127.0.0.1", port, scene.dir.path() / "ca.crt"};
  const auto failed = tls::call(gone, kGet, {}, 60s);
  CHECK(failed.error().code == ErrorCode::kUnavailable);
  CHECK(failed.error().message.find("cannot connect to 127.0.0.1:" + port) == 0);
}

TEST_CASE("a response that is cut, hostile or oversized is an error", "[tls]") {
  Scene scene;
  const std::string long_line(std::size_t{65} << 10, 'x');
  const std::pair<std::string, ErrorCode> answers[] = {
      {"", ErrorCode::kUnavailable},
      {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", ErrorCode::kUnavailable},
      {"SSH-2.0-OpenSSH_9.2\r\n", ErrorCode::kInvalid},
      {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", ErrorCode::kInvalid},
      {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", ErrorCode::kInvalid},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n", ErrorCode::kInvalid},
      {"HTTP/1.1 200 OK\r\nA: " + long_line + "\r\n\r\n", ErrorCode::kInvalid},
  };
  for (const auto& [text, code] : answers) {
    CAPTURE(text.substr(0, 60));
    const auto response = scene.call({text});
    REQUIRE_FALSE(response);
    CHECK(response.error().code == code);
  }
}

TEST_CASE("an end that anyone could have made completes no response", "[tls]") {
  Scene scene;
  CHECK(scene.call({"HTTP/1.1 200 OK\r\n\r\nall"})->body == "all");
  CHECK(scene.call({.text = "HTTP/1.1 200 OK\r\n\r\nal", .is_cut = true}).error().code ==
        ErrorCode::kUnavailable);
}

TEST_CASE("a stream's lines are handed over until it ends, breaks, or no more are wanted",
          "[tls]") {
  Scene scene;
  CHECK(scene.stream_lines({tests::http_stream("a\nb\nc")})->status == 200);
  CHECK(scene.lines == std::vector<std::string>{"a", "b"});
  scene.lines.clear();
  const auto cut = scene.stream_lines({.text = tests::http_stream("a\nb"), .is_cut = true});
  CHECK(cut.error().code == ErrorCode::kUnavailable);
  CHECK(scene.lines == std::vector<std::string>{"a"});
  scene.lines.clear();
  scene.most = 1;
  CHECK(scene.stream_lines({.text = tests::http_stream("a\nb\n"), .is_cut = true}));
  CHECK(scene.lines == std::vector<std::string>{"a"});
}

TEST_CASE("a stream's refusal comes back, and hands over no line", "[tls]") {
  Scene scene;
  const auto refused = scene.stream_lines({tests::http_response("410 Gone", "line\nline\n")});
  CHECK(refused->status == 410);
  CHECK(refused->body == "line\nline\n");
  CHECK(scene.lines.empty());
}

TEST_CASE("a line without an end is given up", "[tls]") {
  Scene scene;
  const std::string most(std::size_t{9} << 20, 'x');
  CHECK(scene.stream_lines({tests::http_stream(most)}).error().code == ErrorCode::kInvalid);
  CHECK(scene.lines.empty());
}
