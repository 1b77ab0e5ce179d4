// SPDX-License-Identifier: Apache-2.0
// One measurement of latencies inside a guest, on a connection of its own: what the daemon's
// lasting connection says and waits for goes on meanwhile.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/rpc/timer.hpp"
#include "base/ttrpc/frame.hpp"
#include "guest-agent/address/address.hpp"
#include "guest-agent/host/connection.hpp"
#include "guest-agent/host/opener.hpp"
#include "guest-agent/protocol/latency.hpp"

namespace ka::guest {

/// The conversation, without I/O. The peer is hostile: an answer to anything else than the two
/// calls, or about CPUs that were not asked for, ends it.
class MeasurementSession {
 public:
  /// `port`: for Opening::kConnect.
  MeasurementSession(LatencyRequest request, Opening opening, std::uint32_t port = kPort);

  /// What to send first.
  std::string start();
  /// Processes bytes; appends those to send to `out`.
  void receive(std::string_view bytes, std::string& out);
  /// Absent: it goes on. Errors hold no text from the peer.
  const std::optional<base::Result<Latencies>>& result() const { return result_; }

 private:
  /// kOpening --ttrpc begins--> kHello --answered--> kMeasuring --answered--> result_.
  enum class State { kOpening, kHello, kMeasuring };

  void hello(std::string& out);
  void check_opener();
  void handle(const ttrpc::Frame& frame, std::string& out);
  void handle_hello(std::string_view payload, std::string& out);
  void handle_latencies(std::string_view payload);
  bool is_as_requested(const Latencies& latencies) const;
  void fail(base::ErrorCode code, const std::string& reason);

  LatencyRequest request_;
  Opener opener_;
  State state_ = State::kOpening;
  ttrpc::Decoder decoder_{kMaxMessage};
  std::optional<base::Result<Latencies>> result_;
};

class Measurement {
 public:
  using Done = std::function<void(base::Result<Latencies>)>;

  /// Calls `done` once, from the loop: the owner may go then, and this with it. The result is
  /// waited for as long as the measurement takes, and some seconds.
  Measurement(boost::asio::io_context& io, const base::Clock& clock, const Address& address,
              const LatencyRequest& request, Done done);

 private:
  void begin();
  void receive(std::string_view bytes);
  void finish(base::Result<Latencies> result);

  LatencyRequest request_;
  Done done_;
  std::optional<MeasurementSession> session_;
  rpc::Timer limit_;
  Connection connection_;
};

}  // namespace ka::guest
