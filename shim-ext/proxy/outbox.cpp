// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/outbox.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "shim-ext/proxy/socket.hpp"

namespace ka::proxy {
namespace {

/// A path as a request line may carry it (RFC 3986): no byte of it ends the line or the word.
std::string encoded(std::string_view path) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string text;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte < 0x7f) {
      text += c;
      continue;
    }
    text.append({'%', kHex[byte >> 4], kHex[byte & 15]});
  }
  return text;
}

std::string to_http(const Report& report) {
  return http::format_request({report.method, encoded(report.path), report.body});
}

}  // namespace

Outbox::~Outbox() { hang_up(); }

void Outbox::post(Report report) {
  const bool sending = static_cast<bool>(connection_);
  const auto first = waiting_.begin() + (sending ? 1 : 0);
  const auto older = std::find_if(
      first, waiting_.end(), [&](const Report& waiting) { return waiting.path == report.path; });
  if (older != waiting_.end()) waiting_.erase(older);
  waiting_.push_back(std::move(report));
  if (waiting_.size() > kMost) waiting_.erase(waiting_.begin() + (sending ? 1 : 0));
  if (!connection_ && !deadline_) begin();
}

void Outbox::on_time() {
  if (!deadline_ || loop_.now() < *deadline_) return;
  connection_ ? fail() : begin();
}

void Outbox::begin() {
  deadline_.reset();
  if (waiting_.empty()) return;
  auto connected = connect_to(socket_);
  if (!connected) return fail();
  connection_ = std::move(*connected);
  deadline_ = loop_.now() + kTimeout;
  unsent_ = to_http(waiting_.front());
  answer_ = http::ResponseReader();
  loop_.add(connection_.get(), EPOLLIN | EPOLLOUT, *this);
}

void Outbox::ready(std::uint32_t events) {
  if (!unsent_.empty() && (events & EPOLLOUT) != 0) send();
  if (connection_ && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) receive();
}

void Outbox::send() {
  const ssize_t sent =
      ::send(connection_.get(), unsent_.data(), unsent_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && errno == EAGAIN) return;
  // A request that was refused while it was sent has an answer all the same.
  if (sent < 0) unsent_.clear();
  if (sent > 0) unsent_.erase(0, static_cast<std::size_t>(sent));
  if (unsent_.empty()) loop_.change(connection_.get(), EPOLLIN, *this);
}

// The daemon logs its verdict on a report itself. What counts here is whether it was delivered.
void Outbox::receive() {
  std::array<char, 4096> block{};
  const ssize_t got = ::recv(connection_.get(), block.data(), block.size(), MSG_DONTWAIT);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) return answer_.close() ? delivered() : fail();
  const auto whole = answer_.feed({block.data(), static_cast<std::size_t>(got)});
  if (!whole) return fail();
  if (*whole) delivered();
}

void Outbox::delivered() {
  hang_up();
  waiting_.pop_front();
  backoff_.reset();
  begin();
}

void Outbox::fail() {
  hang_up();
  deadline_ = loop_.now() + backoff_.next();
}

void Outbox::hang_up() {
  if (!connection_) return;
  loop_.remove(connection_.get());
  connection_.reset();
  deadline_.reset();
}

}  // namespace ka::proxy
