// SPDX-License-Identifier: Apache-2.0
#include "base/rpc/client.hpp"

#include <boost/asio/post.hpp>
#include <utility>

namespace ka::rpc {

Client::Client(boost::asio::io_context& io, Send send) : io_(io), send_(std::move(send)) {}

Client::~Client() = default;

std::uint32_t Client::call(const Request& request, Done done) {
  const std::uint32_t stream = std::exchange(next_stream_, next_stream_ + 2);
  calls_[stream] = std::move(done);
  auto frame = encode_request(stream, request);
  if (frame) {
    send_(std::move(*frame));
    return stream;
  }
  boost::asio::post(io_, [this, stream, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    end(stream, {Code::kResourceExhausted, "the request is larger than ttrpc allows", {}});
  });
  return stream;
}

void Client::receive(std::string_view bytes) {
  decoder_.feed(bytes);
  const std::weak_ptr<bool> alive = alive_;  // a callback may end the connection
  while (!alive.expired()) {
    const auto frame = decoder_.next();
    if (!frame) return;
    handle(*frame);
  }
}

void Client::handle(const ttrpc::Frame& frame) {
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
  if (!call.empty()) call.mapped()(response);
}

}  // namespace ka::rpc
