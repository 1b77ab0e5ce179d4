// SPDX-License-Identifier: Apache-2.0
#include "base/http/client.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "base/fd.hpp"
#include "base/http/exchange.hpp"
#include "base/unix_socket.hpp"

namespace ka::http {
namespace {

using base::ErrorCode;
using base::Result;

constexpr std::chrono::seconds kTimeout{60};
constexpr ResponseLimits kLimits{.head = 64u << 10, .body = 256u << 20};

/// Failures with a daemon that is running.
base::Error broken(const std::string& what) { return {ErrorCode::kUnavailable, what, 0}; }

/// One exchange on a connection of its own.
class ClientConnection {
 public:
  /// Without a limit each step may take kTimeout.
  static Result<ClientConnection> open(const std::filesystem::path& path,
                                       std::optional<base::WaitLimit> wait_limit) {
    auto fd = wait_limit ? base::connect_unix(path) : base::connect_unix(path, kTimeout);
    if (fd) return ClientConnection(std::move(*fd), wait_limit);
    if (fd.error().code == ErrorCode::kInvalid) return unexpected(fd.error());
    return unexpected(base::Error{ErrorCode::kUnavailable, fd.error().message, fd.error().number});
  }

  Result<void> send(std::string_view bytes) {
    while (!bytes.empty()) {
      if (auto ready = wait_for(POLLOUT); !ready) return ready;
      const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      // A request that was refused while it was sent has an answer all the same.
      if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return {};
      if (sent < 0) {
        return unexpected(
            broken(std::string("cannot send to the daemon: ") + std::strerror(errno)));
      }
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return {};
  }

  void wait_for_ever() { wait_limit_ = base::WaitLimit(); }

  /// Reads once. True when the answer is whole.
  Result<bool> receive() {
    if (auto ready = wait_for(POLLIN); !ready) return unexpected(std::move(ready.error()));
    char block[65536];
    const ssize_t size = ::recv(fd_.get(), block, sizeof(block), 0);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) return false;
    if (size <= 0) {
      if (reader_.close()) return true;
      return unexpected(
          broken("the daemon closed the connection before its response was complete"));
    }
    const auto whole = reader_.feed({block, static_cast<std::size_t>(size)});
    if (!whole) return unexpected(broken("the peer sends " + whole.error().message));
    return *whole;
  }

  ResponseReader& reader() { return reader_; }
  Response response() { return {.status = reader_.status(), .body = std::move(reader_.body())}; }

 private:
  ClientConnection(base::Fd fd, std::optional<base::WaitLimit> wait_limit)
      : fd_(std::move(fd)), wait_limit_(wait_limit) {}

  Result<void> wait_for(short events) const {
    const auto waited =
        base::wait_for(fd_.get(), events, wait_limit_.value_or(base::WaitLimit::of(kTimeout)));
    if (waited == base::Waited::kReady) return {};
    return unexpected(broken(std::string("the daemon: ") + base::reason_of(waited)));
  }

  base::Fd fd_;
  std::optional<base::WaitLimit> wait_limit_;
  ResponseReader reader_{kLimits};
};

Result<ClientConnection> send_request(const std::filesystem::path& socket, const Request& request,
                                      std::optional<base::WaitLimit> wait_limit) {
  auto connection = ClientConnection::open(socket, wait_limit);
  if (!connection) return connection;
  if (auto sent = connection->send(format_request(request)); !sent) {
    return unexpected(std::move(sent.error()));
  }
  return connection;
}

/// Hands over the lines that are complete. False: no more are wanted.
bool hand_over(std::string& text, const std::function<bool(std::string_view line)>& handle) {
  for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
    if (!handle(std::string_view(text).substr(0, end))) return false;
    text.erase(0, end + 1);
  }
  return true;
}

}  // namespace

Result<Response> call(const std::filesystem::path& socket, const Request& request,
                      std::optional<base::WaitLimit> wait_limit) {
  auto connection = send_request(socket, request, wait_limit);
  if (!connection) return unexpected(connection.error());
  for (;;) {
    const auto whole = connection->receive();
    if (!whole) return unexpected(whole.error());
    if (*whole) return connection->response();
  }
}

Result<Response> stream_lines(const std::filesystem::path& socket, const std::string& target,
                              const std::function<bool(std::string_view line)>& handle) {
  auto connection = send_request(socket, {"GET", target, {}}, std::nullopt);
  if (!connection) return unexpected(connection.error());
  const ResponseReader& reader = connection->reader();
  for (;;) {
    const auto whole = connection->receive();
    if (!whole) return unexpected(whole.error());
    const bool is_stream = reader.has_head() && reader.is_chunked();
    if (is_stream) {
      connection->wait_for_ever();
      if (!hand_over(connection->reader().body(), handle)) return Response{};
    }
    if (*whole) return is_stream ? Response{} : connection->response();
  }
}

}  // namespace ka::http
