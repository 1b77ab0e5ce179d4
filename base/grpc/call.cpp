// SPDX-License-Identifier: Apache-2.0
#include "base/grpc/call.hpp"

#include <string>
#include <utility>

namespace ka::grpc {

using base::ErrorCode;
using base::fail;

Call::Call(boost::asio::io_context& io, const base::Clock& clock, base::Fd connected,
           const Request& request, std::chrono::milliseconds deadline, Done done, Limits limits)
    : done_(std::move(done)), exchange_(request, limits), deadline_(io, clock) {
  socket_.emplace(io, std::move(connected),
                  rpc::Socket::Events{[this](std::string_view bytes) { receive(bytes); },
                                      [this](const std::string& reason) {
                                        end(fail(ErrorCode::kUnavailable, reason));
                                      }});
  deadline_.in(deadline, [this] { end(fail(ErrorCode::kUnavailable, "no response in time")); });
  flush();
}

void Call::receive(std::string_view bytes) {
  const auto whole = exchange_.feed(bytes);
  if (!whole) return end(unexpected(whole.error()));
  if (*whole) return end(exchange_.release_response());
  flush();
}

void Call::flush() {
  std::string output = exchange_.drain_output();
  if (!output.empty()) socket_->send(std::move(output));
}

void Call::end(base::Result<rpc::Response> response) {
  deadline_.cancel();
  socket_.reset();
  const auto done = std::exchange(done_, {});
  done(std::move(response));
}

}  // namespace ka::grpc
