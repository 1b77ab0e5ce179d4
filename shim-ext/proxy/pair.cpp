// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/pair.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace ka::proxy {
namespace {

/// Room in the kernel for what the other end has not read yet: a message of the largest size then
/// rarely has to wait here for its turn to be written.
constexpr int kRoom = 1 << 20;

void make_room(const base::Fd& socket) {
  // Beyond net.core.wmem_max only with CAP_NET_ADMIN; without it the socket has what it had.
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUFFORCE, &kRoom, sizeof kRoom);
}

}  // namespace

Pair::Pair(Loop& loop, base::Fd client, base::Fd shim, std::span<char> block, Events events)
    : loop_(loop),
      block_(block),
      events_(std::move(events)),
      client_(*this, std::move(client)),
      shim_(*this, std::move(shim)) {
  for (const Side* side : {&client_, &shim_}) make_room(side->fd);
  watch(client_);
  watch(shim_);
}

Pair::~Pair() {
  for (Side* side : {&client_, &shim_}) {
    if (side->watched) loop_.remove(side->fd.get());
  }
}

void Pair::on_ready(Side& side, std::uint32_t events) {
  if (!side.fd) return;  // ended earlier in this turn
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) side.closed = true;
  if ((events & EPOLLOUT) != 0) flush(side);
  if (!side.ended && other(side).drained()) pump(side, other(side));
  advance();
}

// One block a turn, so that no pair keeps the others waiting. Precondition: `to` is drained.
void Pair::pump(Side& from, Side& to) {
  const ssize_t got = ::recv(from.fd.get(), block_.data(), block_.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) return pass_on({block_.data(), static_cast<std::size_t>(got)}, to);
  from.ended = true;
  // An error is the end of both directions.
  from.closed = from.closed || got < 0;
}

void Pair::pass_on(std::string_view bytes, Side& to) {
  const std::size_t put = write(bytes, to);
  if (!to.closed) to.unwritten = bytes.substr(put);
  (&to == &shim_ ? events_.to_shim : events_.to_client)(bytes);
}

void Pair::flush(Side& to) {
  to.written += write(std::string_view(to.unwritten).substr(to.written), to);
  if (to.written == to.unwritten.size()) to.drop_unwritten();
}

// How much of it the socket took. A closed side counts as having taken all of it.
std::size_t Pair::write(std::string_view bytes, Side& to) {
  std::size_t put = 0;
  while (put < bytes.size()) {
    const ssize_t sent =
        ::send(to.fd.get(), bytes.data() + put, bytes.size() - put, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      to.closed = to.closed || errno != EAGAIN;
      break;
    }
    put += static_cast<std::size_t>(sent);
  }
  return put;
}

void Pair::advance() {
  for (Side* side : {&client_, &shim_}) {
    // What was to be sent to a closed side is lost, as it is in a socket's own buffer.
    if (side->closed) side->drop_unwritten();
  }
  if (is_over()) return end();
  forward_end(client_, shim_);
  forward_end(shim_, client_);
  watch(client_);
  watch(shim_);
}

// A side is done when it sends no more and the other has everything; when it is closed too, there
// is nothing left to do for either.
bool Pair::is_over() const {
  const bool client_done = client_.ended && shim_.drained();
  const bool shim_done = shim_.ended && client_.drained();
  return (client_done && shim_done) || (client_done && client_.closed) ||
         (shim_done && shim_.closed);
}

void Pair::forward_end(const Side& from, Side& to) {
  if (!from.ended || !to.drained() || to.end_forwarded) return;
  to.end_forwarded = true;
  ::shutdown(to.fd.get(), SHUT_WR);
}

void Pair::watch(Side& side) {
  std::uint32_t events = 0;
  if (!side.ended && other(side).drained()) events |= EPOLLIN;
  if (!side.drained()) events |= EPOLLOUT;
  // epoll reports a closed socket whether it was asked or not: ask for nothing only of one that
  // has not been closed.
  const bool wanted = events != 0 || (side.ended && !side.closed);
  if (wanted && !side.watched) {
    loop_.add(side.fd.get(), events, side);
  } else if (wanted && events != side.watched_for) {
    loop_.change(side.fd.get(), events, side);
  } else if (!wanted && side.watched) {
    loop_.remove(side.fd.get());
  }
  side.watched = wanted;
  side.watched_for = events;
}

void Pair::end() {
  for (Side* side : {&client_, &shim_}) {
    if (std::exchange(side->watched, false)) loop_.remove(side->fd.get());
    side->fd.reset();
  }
  events_.ended();
}

}  // namespace ka::proxy
