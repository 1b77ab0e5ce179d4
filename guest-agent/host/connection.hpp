// SPDX-License-Identifier: Apache-2.0
// A lasting connection to one port in a guest. It never blocks and never gives up by itself: a
// guest that does not answer loses its connection, with a growing delay. The protocol is elsewhere
// (session.hpp, kata_session.hpp).
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "base/rpc/socket.hpp"
#include "base/rpc/timer.hpp"
#include "guest-agent/address/address.hpp"

namespace ka::guest {

/// Timeouts of the host for a guest.
struct Timing {
  std::chrono::milliseconds deadline = kDeadline;  ///< for each answer
  /// If longer than `deadline`: an answer is late after `deadline`, and given up after this.
  std::chrono::milliseconds longest{0};
  std::chrono::milliseconds first_pause{100};  ///< between connections; doubled each time
  std::chrono::milliseconds last_pause{10000};
  std::chrono::milliseconds between_watches{50};  ///< news come no faster than that
};

class Connection {
 public:
  /// Called from the loop; in any of them the owner may go, and this with it. Only `lost` may be
  /// empty.
  struct Events {
    std::function<void()> begun;  ///< connected: the previous conversation is forgotten
    std::function<void(std::string_view)> bytes;
    std::function<void()> ended;  ///< what `begun` began, and what could not begin
    /// There is no connection (any more), or a response is late: reported once per reason.
    std::function<void(const std::string& reason)> lost;
  };

  /// Connects from the loop, not before it runs.
  Connection(boost::asio::io_context& io, const base::Clock& clock, Address address, Events events,
             Timing timing);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  /// Closes; no event comes after that.
  ~Connection();

  /// Nothing where there is no connection.
  void send(std::string bytes);

  /// Whether an answer is due, and how many came before it: the deadline counts from the moment on
  /// when it is due, not from each byte of it.
  void expect(bool owed, std::uint64_t answered);

  /// The peer identified itself: the next error is reported again, and a lasting connection resets
  /// the back-off.
  void welcome();

  /// Calls `then` unless the connection ends before; the last call of this counts.
  void later(std::chrono::milliseconds delay, std::function<void()> then);

  /// Disconnects, and reconnects after a pause.
  void end(const std::string& reason);
  /// Disconnects for good.
  void give_up(const std::string& reason);

  const Address& address() const { return address_; }

 private:
  void connect();
  void wait_for_connection();
  void begin(base::Fd connected);
  void be_late();
  void close();
  void report_loss(const std::string& reason);

  boost::asio::io_context& io_;
  const base::Clock& clock_;
  Address address_;
  Events events_;
  Timing timing_;
  rpc::Timer pause_timer_;
  rpc::Timer deadline_timer_;
  rpc::Timer later_timer_;
  boost::asio::local::stream_protocol::socket connecting_;
  base::Backoff backoff_;
  base::Clock::Time began_;
  bool welcome_ = false;
  bool owed_ = false;
  std::uint64_t answered_ = 0;
  std::string reported_;  ///< the last reason
  std::unique_ptr<rpc::Socket> socket_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ka::guest
