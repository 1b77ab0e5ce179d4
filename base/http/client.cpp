// SPDX-License-Identifier: Apache-2.0
#include "base/http/client.hpp"

#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/fd.hpp"
#include "base/unix_socket.hpp"

namespace ka::http {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;

constexpr int kPatience = 60;                   // seconds
constexpr std::size_t kMostHeader = 64u << 10;  // bytes
constexpr std::size_t kMostBody = 256u << 20;   // bytes

struct Head {
  int status = 0;
  std::optional<std::size_t> length;
  bool chunked = false;
};

auto broken(const std::string& what) { return fail(ErrorCode::kUnavailable, what); }

template <typename Number>
bool read_number(std::string_view text, Number& into, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into, base);
  return error == std::errc{} && end == text.data() + text.size();
}

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

/// A connection that is read line by line or by the byte.
class Connection {
 public:
  static Result<Connection> open(const std::filesystem::path& path) {
    auto fd = base::connect_unix(path, 0);
    if (!fd && fd.error().code == ErrorCode::kInvalid) return unexpected(fd.error());
    if (!fd)
      return unexpected(
          base::Error{ErrorCode::kUnavailable, fd.error().message, fd.error().number});
    return Connection(std::move(*fd));
  }

  Result<void> send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      // A request that was refused while it was sent has an answer all the same.
      if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return {};
      if (sent < 0)
        return broken(std::string("the daemon cannot be sent to: ") + std::strerror(errno));
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return {};
  }

  void set_patience(int seconds) {
    const timeval time{.tv_sec = seconds, .tv_usec = 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
  }

  /// Up to "\r\n", which is dropped.
  Result<std::string> line() {
    for (;;) {
      if (const auto end = buffer_.find("\r\n"); end != std::string::npos) {
        std::string text = buffer_.substr(0, end);
        buffer_.erase(0, end + 2);
        return text;
      }
      if (buffer_.size() > kMostHeader) return broken("the daemon's answer has an endless line");
      if (auto more = receive(); !more) return unexpected(more.error());
    }
  }

  Result<std::string> bytes(std::size_t size) {
    while (buffer_.size() < size) {
      if (auto more = receive(); !more) return unexpected(more.error());
    }
    std::string text = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return text;
  }

 private:
  explicit Connection(base::Fd fd) : fd_(std::move(fd)) { set_patience(kPatience); }

  Result<void> receive() {
    char block[65536];
    const ssize_t size = ::recv(fd_.get(), block, sizeof(block), 0);
    if (size < 0 && errno == EINTR) return {};
    if (size < 0 && errno == EAGAIN) return broken("the daemon does not answer");
    if (size <= 0) return broken("the daemon hung up before its answer was complete");
    buffer_.append(block, static_cast<std::size_t>(size));
    return {};
  }

  base::Fd fd_;
  std::string buffer_;
};

Result<void> read_field(std::string_view line, Head& head) {
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return broken("the daemon's answer is no HTTP");
  const std::string_view name = line.substr(0, colon);
  std::string_view value = line.substr(colon + 1);
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  if (same_name(name, "transfer-encoding")) head.chunked = same_name(value, "chunked");
  if (!same_name(name, "content-length")) return {};
  std::size_t length = 0;
  if (!read_number(value, length) || length > kMostBody) {
    return broken("the daemon's answer has no good length");
  }
  head.length = length;
  return {};
}

Result<Head> read_head(Connection& connection) {
  const auto first = connection.line();
  if (!first) return unexpected(first.error());
  Head head;
  if (!first->starts_with("HTTP/1.") || first->size() < 12 ||
      !read_number(std::string_view(*first).substr(9, 3), head.status)) {
    return broken("what answers there does not speak HTTP");
  }
  for (;;) {
    const auto line = connection.line();
    if (!line) return unexpected(line.error());
    if (line->empty()) return head;
    if (auto good = read_field(*line, head); !good) return unexpected(good.error());
  }
}

/// Empty at the end of the body.
Result<std::string> read_chunk(Connection& connection) {
  const auto size_line = connection.line();
  if (!size_line) return unexpected(size_line.error());
  std::size_t size = 0;
  if (!read_number(*size_line, size, 16) || size > kMostBody) {
    return broken("the daemon's answer has a malformed chunk");
  }
  auto chunk = connection.bytes(size + 2);
  if (chunk) chunk->resize(size);
  return chunk;
}

Result<Response> read_answer(Connection& connection, const Head& head) {
  auto body = connection.bytes(head.length.value_or(0));
  if (!body) return unexpected(body.error());
  return Response{.status = head.status, .body = std::move(*body)};
}

Result<Connection> ask(const std::filesystem::path& socket, const Request& request) {
  auto connection = Connection::open(socket);
  if (!connection) return connection;
  const auto sent =
      connection->send(request.method + ' ' + request.target +
                       " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                       "Content-Length: " +
                       std::to_string(request.body.size()) + "\r\n\r\n" + request.body);
  if (!sent) return unexpected(sent.error());
  return connection;
}

}  // namespace

Result<Response> call(const std::filesystem::path& socket, const Request& request) {
  auto connection = ask(socket, request);
  if (!connection) return unexpected(connection.error());
  const auto head = read_head(*connection);
  if (!head) return unexpected(head.error());
  return read_answer(*connection, *head);
}

Result<Response> follow(const std::filesystem::path& socket, const std::string& target,
                        const std::function<bool(std::string_view line)>& take) {
  auto connection = ask(socket, {"GET", target, {}});
  if (!connection) return unexpected(connection.error());
  const auto head = read_head(*connection);
  if (!head) return unexpected(head.error());
  if (!head->chunked) return read_answer(*connection, *head);
  connection->set_patience(0);
  std::string text;
  for (;;) {
    const auto chunk = read_chunk(*connection);
    if (!chunk) return unexpected(chunk.error());
    if (chunk->empty()) return Response{};
    text += *chunk;
    for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      if (!take(std::string_view(text).substr(0, end))) return Response{};
      text.erase(0, end + 1);
    }
  }
}

}  // namespace ka::http
