// A lasting connection to one guest's agent. It never blocks and never gives up: a guest that does
// not answer, or misbehaves, costs its own connection and a pause that grows.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "guest-agent/host/address.hpp"
#include "guest-agent/host/session.hpp"
#include "shim-ext/rpc/socket.hpp"

namespace ka::guest {

/// How patient a link is.
struct Patience {
  std::chrono::milliseconds deadline = kDeadline;  ///< for each answer
  std::chrono::milliseconds first_pause{100};      ///< between connections; doubled each time
  std::chrono::milliseconds last_pause{10000};
  std::chrono::milliseconds between_watches{50};  ///< news come no faster than that
};

class Link {
 public:
  /// Called from the loop. Any of them may be empty.
  struct Events {
    std::function<void(const std::string& program)> connected;
    std::function<void(const News&)> news;
    /// There is no connection (any more): told once for each reason.
    std::function<void(const std::string& reason)> lost;
  };

  /// Connects from the loop, not before it runs.
  Link(boost::asio::io_context& io, Address address, Events events, Patience patience = {});
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  /// Closes; no event comes after that.
  ~Link();

  /// What the guest is to do. Told again to an agent that was started anew.
  void wish(const policy::GuestWishes& wishes);

  const Address& address() const { return address_; }

 private:
  using Timer = boost::asio::steady_timer;

  void connect();
  void wait_for_connection();
  void begin(base::Fd connected);
  void receive(std::string_view bytes);
  void tell(const std::vector<News>& news);
  void send(std::string bytes);
  void follow_deadline();
  void watch_soon();
  void end(const std::string& reason);
  void in(Timer& timer, std::chrono::milliseconds delay, std::function<void()> then);

  boost::asio::io_context& io_;
  Address address_;
  Events events_;
  Patience patience_;
  Timer pause_timer_;
  Timer deadline_timer_;
  Timer watch_timer_;
  boost::asio::local::stream_protocol::socket connecting_;
  std::chrono::milliseconds pause_;
  std::chrono::steady_clock::time_point began_;
  bool owed_ = false;
  std::uint64_t answered_ = 0;
  bool told_connected_ = false;
  std::string told_;  ///< the last complaint
  std::optional<policy::GuestWishes> wishes_;
  std::optional<Session> session_;
  std::unique_ptr<rpc::Socket> socket_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ka::guest
