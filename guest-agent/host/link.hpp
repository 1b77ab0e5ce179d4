// SPDX-License-Identifier: Apache-2.0
// A lasting connection to one guest's agent: sends it the guest's part of the plan, and reads
// updates at a bounded rate.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "guest-agent/host/connection.hpp"
#include "guest-agent/host/session.hpp"

namespace ka::guest {

class Link {
 public:
  /// Called from the loop. Any of them may be empty.
  struct Events {
    std::function<void(const std::string& program)> connected;
    std::function<void(const News&)> news;
    /// There is no connection (any more): reported once per reason.
    std::function<void(const std::string& reason)> lost;
  };

  /// Connects from the loop, not before it runs.
  Link(boost::asio::io_context& io, const base::Clock& clock, Address address, Events events,
       Timing timing = {});
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  /// Closes; no event comes after that.
  ~Link();

  /// The guest's part of the plan. Sent again to an agent that restarted.
  void apply(const policy::GuestSpec& spec);

  const Address& address() const { return connection_.address(); }

 private:
  void begin();
  void receive(std::string_view bytes);
  void notify(const std::vector<News>& news);
  void update_deadline();
  void watch_soon();

  Events events_;
  std::chrono::milliseconds between_watches_;
  bool reported_connected_ = false;
  std::optional<policy::GuestSpec> spec_;
  std::optional<Session> session_;
  Connection connection_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ka::guest
