// SPDX-License-Identifier: Apache-2.0
#include "base/rpc/message.hpp"

#include "base/text.hpp"

namespace ka::rpc {
namespace {

bool is_too_large(const std::string& frame) {
  return frame.size() > ttrpc::kHeaderSize + ttrpc::kMaxData;
}

std::string too_large(const std::string& frame) {
  return "a message of " + std::to_string(frame.size() - ttrpc::kHeaderSize) +
         " bytes is larger than " + std::to_string(ttrpc::kMaxData);
}

}  // namespace

Response unimplemented(const Request& request) {
  return {Code::kUnimplemented, "method " + request.method, {}};
}

std::optional<Request> decode_request(std::string_view data) {
  const auto call = ttrpc::read_call(data);
  if (!call) return std::nullopt;
  Request request{std::string(call->service),
                  std::string(call->method),
                  std::string(call->payload),
                  std::chrono::nanoseconds(call->timeout_nano),
                  {}};
  for (const auto& [key, value] : call->metadata) request.metadata.emplace_back(key, value);
  return request;
}

std::optional<Response> decode_response(std::string_view data) {
  const auto answer = ttrpc::read_answer(data);
  if (!answer) return std::nullopt;
  return Response{answer->code, base::printable(answer->message, base::kMaxSentence),
                  std::string(answer->payload)};
}

std::optional<std::string> encode_request(std::uint32_t stream, const Request& request) {
  ttrpc::Call call{request.service, request.method, request.payload, request.timeout.count(), {}};
  call.metadata.assign(request.metadata.begin(), request.metadata.end());
  std::string frame = ttrpc::write_call(stream, call);
  if (is_too_large(frame)) return std::nullopt;
  return frame;
}

std::string encode_response(std::uint32_t stream, const Response& response) {
  std::string frame =
      ttrpc::write_answer(stream, {response.code, response.message, response.payload});
  if (!is_too_large(frame)) return frame;
  const std::string why = too_large(frame);
  return ttrpc::write_answer(stream, {Code::kResourceExhausted, why, {}});
}

}  // namespace ka::rpc
