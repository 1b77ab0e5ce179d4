// SPDX-License-Identifier: Apache-2.0
#include "base/http/query.hpp"

#include <utility>

namespace ka::http {

using base::ErrorCode;

Query::Query(boost::asio::io_context& io, const base::Clock& clock, base::Fd connected,
             const Request& request, std::chrono::milliseconds deadline, Done done)
    : done_(std::move(done)), deadline_(io, clock) {
  socket_.emplace(io, std::move(connected),
                  rpc::Socket::Events{[this](std::string_view bytes) { receive(bytes); },
                                      [this](const std::string&) { close(); }});
  deadline_.in(deadline,
               [this] { end(base::fail(ErrorCode::kUnavailable, "no response in time")); });
  socket_->send(format_request(request));
}

void Query::receive(std::string_view bytes) {
  const auto whole = reader_.feed(bytes);
  if (!whole) return end(unexpected(whole.error()));
  if (*whole) end(Response{.status = reader_.status(), .body = std::move(reader_.body())});
}

void Query::close() {
  if (auto closed = reader_.close(); !closed) return end(unexpected(std::move(closed.error())));
  end(Response{.status = reader_.status(), .body = std::move(reader_.body())});
}

void Query::end(base::Result<Response> response) {
  deadline_.cancel();
  socket_.reset();
  const auto done = std::exchange(done_, {});
  done(std::move(response));
}

}  // namespace ka::http
