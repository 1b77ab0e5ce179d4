// SPDX-License-Identifier: Apache-2.0
// Bytes that a client sends to the API's socket: the server behind a real socket, and what a
// request's target means. The server must answer or hang up, and serve the next client.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "affinity/api/path.hpp"
#include "base/http/server.hpp"
#include "base/unix_socket.hpp"
#include "tests/fuzz/require.hpp"

using namespace ka;

namespace {

http::Response answer(const http::Request& request) {
  const auto path = api::parse_target(request.target);
  if (!path) return http::error_response(400, path.error().message);
  for (const std::string& part : path->parts) tests::require(!part.empty());
  return http::error_response(404, "no such resource");
}

struct Bench {
  Bench() : path("/tmp/fuzz_http." + std::to_string(::getpid())) {
    std::filesystem::remove(path);
    auto listening = base::listen_unix(path);
    tests::require(listening.has_value());
    server =
        std::make_unique<http::Server>(io, clock, listening->release(), answer, [](const auto&) {});
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench() { std::filesystem::remove(path); }

  std::filesystem::path path;
  const base::Clock clock;
  boost::asio::io_context io;
  std::unique_ptr<http::Server> server;
};

/// Until the server has hung up: the client has said that nothing more comes.
void read_to_end(Bench& bench, const base::Fd& client) {
  std::array<char, 4096> bytes{};
  for (int turns = 0; turns < 10000; ++turns) {
    bench.io.restart();
    bench.io.poll();
    const ssize_t got = ::recv(client.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return;
  }
  tests::require(false);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Bench bench;
  (void)api::parse_target({reinterpret_cast<const char*>(data), size});
  const auto client = base::connect_unix(bench.path);
  tests::require(client.has_value());
  for (std::size_t sent = 0; sent < size;) {
    const ssize_t put = ::send(client->get(), data + sent, size - sent, MSG_NOSIGNAL);
    if (put < 0 && errno != EAGAIN) break;
    if (put > 0) sent += static_cast<std::size_t>(put);
    bench.io.restart();
    bench.io.poll();
  }
  ::shutdown(client->get(), SHUT_WR);
  read_to_end(bench, *client);
  return 0;
}
