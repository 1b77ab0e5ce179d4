// SPDX-License-Identifier: Apache-2.0
#include "base/rpc/server.hpp"

namespace ka::rpc {

struct Server::Lane {
  Send send;
};

Server::Server(Send send, Handler handler)
    : lane_(std::make_shared<Lane>(std::move(send))), handler_(std::move(handler)) {}

Server::~Server() = default;

void Server::receive(std::string_view bytes) {
  decoder_.feed(bytes);
  while (const auto frame = decoder_.next()) handle(*frame);
}

/// The rules about stream ids are those of ttrpc's server.go: odd, and each higher than the last.
/// Data of streams is not ours (we offer unary calls only), and unknown types are to be ignored.
void Server::handle(const ttrpc::Frame& frame) {
  const auto& [length, stream, type, flags] = frame.header;
  if (type != ttrpc::kRequest) return;
  if (stream % 2 != 1 || stream <= last_stream_) {
    return refuse(stream, Code::kInvalidArgument,
                  "stream id " + std::to_string(stream) + " is even or not a new one");
  }
  last_stream_ = stream;
  if (frame.header.oversized()) {
    return refuse(stream, Code::kResourceExhausted,
                  "a message of " + std::to_string(length) + " bytes is larger than " +
                      std::to_string(ttrpc::kMaxData));
  }
  auto request = decode_request(frame.data);
  if (!request) return refuse(stream, Code::kInvalidArgument, "not a ttrpc request");
  if ((flags & ttrpc::kRemoteOpen) != 0) {
    return refuse(stream, Code::kUnimplemented, "method " + request->method + " as a stream");
  }
  const auto answered = std::make_shared<bool>(false);
  handler_(std::move(*request), [lane = std::weak_ptr<Lane>(lane_), answer_to = stream,
                                 answered](const Response& response) {
    const auto open = lane.lock();
    if (!open || std::exchange(*answered, true)) return;
    open->send(encode_response(answer_to, response));
  });
}

void Server::refuse(std::uint32_t stream, Code code, std::string message) {
  lane_->send(encode_response(stream, {code, std::move(message), {}}));
}

}  // namespace ka::rpc
