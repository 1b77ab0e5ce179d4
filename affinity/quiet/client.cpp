// SPDX-License-Identifier: Apache-2.0
#include "affinity/quiet/client.hpp"

#include <sys/socket.h>

#include <utility>

#include "affinity/quiet/answer.hpp"
#include "base/unix_socket.hpp"

namespace ka::quiet {

using base::ErrorCode;

Client::Client(boost::asio::io_context& io, const base::Clock& clock, ClientOptions options,
               Answered answered)
    : io_(io),
      clock_(clock),
      options_(std::move(options)),
      answered_(std::move(answered)),
      backoff_(options_.first_pause, options_.last_pause),
      next_(io, clock) {}

/// The pause after a failure is not cut short.
void Client::request(policy::CpuSet cpus) {
  wanted_ = std::move(cpus);
  if (!std::exchange(wants_, true) && !query_) query_in({});
}

void Client::query_in(std::chrono::milliseconds pause) {
  next_.in(pause, [this] { query(); });
}

void Client::query() {
  wants_ = false;
  sent_ = wanted_;
  auto connected = base::connect_unix(options_.socket, SOCK_NONBLOCK);
  if (!connected) return finish(unexpected(connected.error()));
  query_.emplace(io_, clock_, std::move(*connected), quiet_request(sent_), options_.deadline,
                 [this](const base::Result<http::Response>& response) { record(response); });
}

void Client::record(const base::Result<http::Response>& response) {
  auto answer = response ? read_answer(*response) : unexpected(response.error());
  query_.reset();
  if (!answer && answer.error().code != ErrorCode::kConflict) {
    answer.error().message = options_.socket.string() + ": " + answer.error().message;
  }
  finish(std::move(answer));
}

void Client::finish(base::Result<policy::QuietState> answer) {
  const bool is_answer = answer || answer.error().code == ErrorCode::kConflict;
  if (is_answer) {
    backoff_.reset();
    if (wants_) query_in({});
  } else {
    wants_ = true;
    query_in(backoff_.next());
  }
  answered_(sent_, std::move(answer));
}

}  // namespace ka::quiet
