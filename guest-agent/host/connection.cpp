// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/host/connection.hpp"

#include <sys/socket.h>

#include <boost/asio/error.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "guest-agent/host/connect.hpp"

namespace ka::guest {
namespace {

using boost::system::error_code;

constexpr const char* kLate = "no response from the agent in time";

int connect_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace

Connection::Connection(boost::asio::io_context& io, const base::Clock& clock, Address address,
                       Events events, Timing timing)
    : io_(io),
      clock_(clock),
      address_(std::move(address)),
      events_(std::move(events)),
      timing_(timing),
      pause_timer_(io, clock),
      deadline_timer_(io, clock),
      later_timer_(io, clock),
      connecting_(io),
      backoff_(timing.first_pause, timing.last_pause) {
  pause_timer_.in({}, [this] { connect(); });
}

Connection::~Connection() = default;

void Connection::later(std::chrono::milliseconds delay, std::function<void()> then) {
  later_timer_.in(delay, std::move(then));
}

void Connection::connect() {
  auto fd = guest::connect(address_);
  if (!fd) return end(fd.error().message);
  connecting_.assign(boost::asio::local::stream_protocol(), fd->release());
  deadline_timer_.in(timing_.deadline, [this] { end("no response from the guest"); });
  wait_for_connection();
}

void Connection::wait_for_connection() {
  connecting_.async_wait(
      boost::asio::local::stream_protocol::socket::wait_write,
      [this, alive = std::weak_ptr<bool>(alive_)](const error_code& error) {
        if (error || alive.expired() || !connecting_.is_open()) return;
        const int refused = connect_error(connecting_.native_handle());
        if (refused != 0) {
          return end("cannot connect to " + to_string(address_) + ": " + std::strerror(refused));
        }
        error_code failed;
        base::Fd fd(connecting_.release(failed));
        begin(std::move(fd));
      });
}

void Connection::begin(base::Fd connected) {
  deadline_timer_.cancel();
  began_ = clock_.now();
  socket_ = std::make_unique<rpc::Socket>(
      io_, std::move(connected),
      rpc::Socket::Events{[this](std::string_view bytes) { events_.bytes(bytes); },
                          [this](const std::string& reason) { end(reason); }});
  events_.begun();
}

void Connection::send(std::string bytes) {
  if (!bytes.empty() && socket_) socket_->send(std::move(bytes));
}

void Connection::expect(bool owed, std::uint64_t answered) {
  const bool same = answered_ == std::exchange(answered_, answered);
  if (owed == std::exchange(owed_, owed) && same) return;
  if (!owed) {
    deadline_timer_.cancel();
    return;
  }
  deadline_timer_.in(timing_.deadline, [this] { be_late(); });
}

void Connection::be_late() {
  if (timing_.longest <= timing_.deadline) return end(kLate);
  deadline_timer_.in(timing_.longest - timing_.deadline, [this] { end(kLate); });
  report_loss(kLate);
}

void Connection::welcome() {
  welcome_ = true;
  reported_.clear();
}

void Connection::end(const std::string& reason) {
  const auto lasted = clock_.now() - began_;
  if (welcome_ && lasted > timing_.last_pause) backoff_.reset();
  close();
  pause_timer_.in(backoff_.next(), [this] { connect(); });
  report_loss(reason);
}

void Connection::give_up(const std::string& reason) {
  close();
  report_loss(reason);
}

void Connection::close() {
  deadline_timer_.cancel();
  later_timer_.cancel();
  welcome_ = false;
  owed_ = false;
  answered_ = 0;
  error_code ignored;
  connecting_.close(ignored);
  socket_.reset();
  events_.ended();
}

void Connection::report_loss(const std::string& reason) {
  if (std::exchange(reported_, reason) != reason && events_.lost) events_.lost(reason);
}

}  // namespace ka::guest
