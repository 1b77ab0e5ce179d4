// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/connections.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "guest-agent/agent/sockets.hpp"

namespace ka::agent {
namespace {

/// A host that does not read its responses is disconnected.
constexpr std::size_t kMostUnwritten = std::size_t{2} << 20;

bool later(int error) { return error == EAGAIN || error == EINTR; }

/// Writes as much as possible; false when the peer is gone.
bool flush(int fd, std::string& out) {
  while (!out.empty()) {
    const ssize_t written = ::write(fd, out.data(), out.size());
    if (written < 0) return later(errno);
    out.erase(0, static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

bool Connection::readable() {
  std::array<char, 16384> buffer;
  const ssize_t size = ::read(fd(), buffer.data(), buffer.size());
  unread_ = size < 0 && !later(errno) && errno != ECONNRESET ? errno : 0;
  if (size < 0) return later(errno);
  if (size == 0) return false;
  const bool good = session_.receive({buffer.data(), static_cast<std::size_t>(size)}, out_);
  return flush(fd(), out_) && good && out_.size() <= kMostUnwritten;
}

bool Connection::writable() { return flush(fd(), out_); }

bool Connection::notify() {
  session_.notify(out_);
  return flush(fd(), out_) && out_.size() <= kMostUnwritten;
}

bool SerialLine::ready() {
  std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t size = ::read(fd(), buffer.data(), buffer.size());
    if (size < 0 && !later(errno)) return false;
    if (size <= 0) break;
    receive({buffer.data(), static_cast<std::size_t>(size)});
  }
  return flush(fd(), out_);
}

void SerialLine::receive(std::string_view bytes) {
  if (const auto behind = scanner_.find(bytes)) {
    bytes.remove_prefix(*behind);
    session_.emplace(agent_);
    out_ = guest::kLineMark;
  }
  if (session_ && !session_->receive(bytes, out_)) session_.reset();
  if (out_.size() <= kMostUnwritten) return;
  session_.reset();
  out_.clear();
}

bool SerialLine::notify() {
  if (session_) session_->notify(out_);
  return flush(fd(), out_);
}

Connections::Connections(Loop& loop, Agent& agent, std::function<void()> on_request, Retry retry)
    : loop_(loop), agent_(agent), on_request_(std::move(on_request)), retry_(std::move(retry)) {}

base::Result<void> Connections::listen(base::Result<base::Fd> listener) {
  if (!listener) return unexpected(listener.error());
  auto done = watch(listener->get());
  if (done) listeners_.push_back(*std::move(listener));
  return done;
}

base::Result<void> Connections::watch(int listener) {
  return loop_.add(listener, EPOLLIN, [this, listener](std::uint32_t) { on_listener(listener); });
}

/// The host may still wait: its listener would be ready at once again, for ever.
void Connections::on_listener(int listener) {
  const auto done = accept(listener);
  if (done) return;
  loop_.remove(listener);
  const auto again = [this, listener] {
    auto accepted = accept(listener);
    return accepted ? watch(listener) : accepted;
  };
  retry_(again, done.error());
}

base::Result<void> Connections::accept(int listener) {
  auto fd = accept_host(listener);
  if (!fd) return unexpected(fd.error());
  if (*fd) admit(*std::move(fd));
  return {};
}

void Connections::admit(base::Fd fd) {
  if (connections_.size() >= kMost) make_room();
  const int number = fd.get();
  if (!loop_.add(number, EPOLLIN,
                 [this, number](std::uint32_t events) { on_event(number, events); })) {
    return;
  }
  connections_.try_emplace(number, std::move(fd), agent_);
  by_silence_.push_back(number);
}

void Connections::make_room() {
  const auto mute =
      std::ranges::find_if(by_silence_, [this](int fd) { return !connections_.at(fd).greeted(); });
  close_or_rearm(mute == by_silence_.end() ? by_silence_.front() : *mute, false);
}

void Connections::on_event(int fd, std::uint32_t events) {
  const auto found = connections_.find(fd);
  if (found == connections_.end()) return;
  by_silence_.remove(fd);
  by_silence_.push_back(fd);
  const bool readable = (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0;
  bool goes_on = (events & EPOLLOUT) == 0 || found->second.writable();
  if (goes_on && readable) {
    goes_on = found->second.readable();
    print_unread(found->second.unread());
  }
  close_or_rearm(fd, goes_on);
  if (readable) on_request_();
}

/// The host connects again and again: once, until something can be read.
void Connections::print_unread(int number) {
  if (number != 0 && number != printed_) {
    const auto error = base::system_error(number, "cannot read what the host says");
    std::fprintf(stderr, "kata-affinity-agent: %s\n", error.message.c_str());
  }
  printed_ = number;
}

void Connections::close_or_rearm(int fd, bool goes_on) {
  if (!goes_on) {
    loop_.remove(fd);
    connections_.erase(fd);
    by_silence_.remove(fd);
    return;
  }
  const bool unwritten = connections_.at(fd).has_unwritten();
  loop_.change(fd, unwritten ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void Connections::use_serial(base::Fd port) {
  if (!port || serial_) return;
  auto line = std::make_unique<SerialLine>(std::move(port), agent_);
  // By edges: a port whose other end is closed is always "ready".
  const auto events = EPOLLIN | EPOLLOUT | EPOLLET;
  if (!loop_.add(line->fd(), events, [this](std::uint32_t) { on_serial(); })) return;
  serial_ = std::move(line);
  on_serial();
}

void Connections::on_serial() {
  if (!serial_->ready()) {
    loop_.remove(serial_->fd());
    serial_.reset();
    return;
  }
  on_request_();
}

void Connections::notify() {
  std::vector<int> over;
  for (auto& [fd, connection] : connections_) {
    if (!connection.notify()) over.push_back(fd);
  }
  for (const int fd : over) close_or_rearm(fd, false);
  for (const auto& [fd, connection] : connections_) close_or_rearm(fd, true);
  if (serial_) serial_->notify();
}

}  // namespace ka::agent
