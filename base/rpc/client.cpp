// SPDX-License-Identifier: Apache-2.0
#include "base/rpc/client.hpp"

#include <boost/asio/post.hpp>
#include <utility>

namespace ka::rpc {

Client::Client(boost::asio::io_context& io, Send send) : io_(io), send_(std::move(send)) {}

Client::~Client() = default;

std::uint32_t Client::call(const Request& request, Done done) {
  const std::uint32_t stream = std::exchange(next_stream_, next_stream_ + 2);
  Call& call = calls_[stream];
  call.done = std::move(done);
  auto frame = encode_request(stream, request);
  if (!frame) {
    end_soon(stream, {Code::kResourceExhausted, "the request is larger than ttrpc allows", {}});
    return stream;
  }
  if (request.timeout.count() > 0) start_deadline(stream, call, request.timeout);
  send_(std::move(*frame));
  return stream;
}

void Client::start_deadline(std::uint32_t stream, Call& call, std::chrono::nanoseconds timeout) {
  call.deadline = std::make_unique<boost::asio::steady_timer>(io_, timeout);
  call.deadline->async_wait(
      [this, stream, alive = std::weak_ptr<bool>(alive_)](const boost::system::error_code& error) {
        if (error || alive.expired()) return;
        end(stream, {Code::kDeadlineExceeded, "no response in time", {}});
      });
}

void Client::end_soon(std::uint32_t stream, Response response) {
  boost::asio::post(
      io_, [this, stream, response = std::move(response), alive = std::weak_ptr<bool>(alive_)] {
        if (!alive.expired()) end(stream, response);
      });
}

void Client::cancel(std::uint32_t stream) {
  end_soon(stream, {Code::kCancelled, "cancelled by the caller", {}});
}

void Client::close(const std::string& reason) {
  for (const auto& [stream, call] : calls_) end_soon(stream, {Code::kUnavailable, reason, {}});
}

void Client::receive(std::string_view bytes) {
  decoder_.feed(bytes);
  const std::weak_ptr<bool> alive = alive_;  // a callback may end the connection
  while (!alive.expired()) {
    const auto frame = decoder_.next();
    if (!frame) return;
    take(*frame);
  }
}

void Client::take(const ttrpc::Frame& frame) {
  if (frame.header.type != ttrpc::kResponse) return;
  const std::uint32_t stream = frame.header.stream;
  if (frame.header.oversized()) {
    return end(stream, {Code::kResourceExhausted, "the response is larger than ttrpc allows", {}});
  }
  const auto response = decode_response(frame.data);
  end(stream, response ? *response : Response{Code::kInternal, "not a ttrpc response", {}});
}

void Client::end(std::uint32_t stream, const Response& response) {
  const auto call = calls_.extract(stream);
  if (call.empty()) return;  // it timed out or was cancelled
  call.mapped().done(response);
}

}  // namespace ka::rpc
