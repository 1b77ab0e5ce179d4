// SPDX-License-Identifier: Apache-2.0
// Queues reports to the daemon over its HTTP API, without waiting. While there is no
// daemon, or it does not answer, the last report of each path is kept, and sent when one is
// there.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/backoff.hpp"
#include "base/fd.hpp"
#include "base/http/exchange.hpp"
#include "shim-ext/proxy/loop.hpp"
#include "shim-ext/proxy/reporter.hpp"

namespace ka::proxy {

class Outbox final : public Watch {
 public:
  /// More reports than this are not kept: the oldest go.
  static constexpr std::size_t kMost = 256;
  /// A daemon that has not answered by then counts as absent.
  static constexpr std::chrono::seconds kTimeout{5};
  /// Pauses between two tries grow from the one up to the other.
  static constexpr std::chrono::milliseconds kShortestPause{500};
  static constexpr std::chrono::seconds kLongestPause{30};

  /// `socket`: the API's.
  Outbox(Loop& loop, std::string socket) : loop_(loop), socket_(std::move(socket)) {}
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;
  ~Outbox() override;

  void post(Report report);
  /// Nothing is under way: all was delivered, or the daemon is not there.
  bool idle() const { return !connection_; }
  /// When on_time() wants to be called; absent: never.
  std::optional<Loop::Time> deadline() const { return deadline_; }
  void on_time();
  void ready(std::uint32_t events) override;

 private:
  void begin();
  void send();
  void receive();
  void delivered();
  void fail();
  void hang_up();

  Loop& loop_;
  std::string socket_;
  std::deque<Report> waiting_;
  base::Fd connection_;  ///< while the first of `waiting_` is under way
  std::string unsent_;
  http::ResponseReader answer_;
  std::optional<Loop::Time> deadline_;
  base::Backoff backoff_{kShortestPause, kLongestPause};
};

}  // namespace ka::proxy
