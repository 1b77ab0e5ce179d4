#include "shim-ext/rpc/message.hpp"

#include "shim-ext/proto/ttrpc.pb.h"

namespace ka::rpc {
namespace {

namespace wire = proto::ttrpc;

// protobuf counts bytes in int; a frame's data is far below that.
bool parse(google::protobuf::MessageLite& message, std::string_view data) {
  return message.ParseFromArray(data.data(), static_cast<int>(data.size()));
}

std::string too_large(std::size_t size) {
  return "a message of " + std::to_string(size) + " bytes is larger than " +
         std::to_string(ttrpc::kMaxData);
}

std::string serialize(const Response& response) {
  wire::Response message;
  if (response.code != Code::kOk) {
    message.mutable_status()->set_code(static_cast<std::int32_t>(response.code));
    message.mutable_status()->set_message(response.message);
  }
  message.set_payload(response.payload);
  return message.SerializeAsString();
}

}  // namespace

Response unimplemented(const Request& request) {
  return {Code::kUnimplemented, "method " + request.method, {}};
}

std::optional<Request> decode_request(std::string_view data) {
  wire::Request message;
  if (!parse(message, data)) return std::nullopt;
  Request request;
  request.service = std::move(*message.mutable_service());
  request.method = std::move(*message.mutable_method());
  request.payload = std::move(*message.mutable_payload());
  request.timeout = std::chrono::nanoseconds(message.timeout_nano());
  for (auto& entry : *message.mutable_metadata()) {
    request.metadata.emplace_back(std::move(*entry.mutable_key()),
                                  std::move(*entry.mutable_value()));
  }
  return request;
}

std::optional<Response> decode_response(std::string_view data) {
  wire::Response message;
  if (!parse(message, data)) return std::nullopt;
  Response response;
  response.code = static_cast<Code>(message.status().code());
  response.message = message.status().message();
  response.payload = std::move(*message.mutable_payload());
  return response;
}

std::optional<std::string> encode_request(std::uint32_t stream, const Request& request) {
  wire::Request message;
  message.set_service(request.service);
  message.set_method(request.method);
  message.set_payload(request.payload);
  message.set_timeout_nano(request.timeout.count());
  for (const auto& [key, value] : request.metadata) {
    auto* entry = message.add_metadata();
    entry->set_key(key);
    entry->set_value(value);
  }
  const std::string data = message.SerializeAsString();
  if (data.size() > ttrpc::kMaxData) return std::nullopt;
  return ttrpc::encode(stream, ttrpc::kRequest, 0, data);
}

std::string encode_response(std::uint32_t stream, const Response& response) {
  std::string data = serialize(response);
  if (data.size() > ttrpc::kMaxData) {
    data = serialize({Code::kResourceExhausted, too_large(data.size()), {}});
  }
  return ttrpc::encode(stream, ttrpc::kResponse, 0, data);
}

}  // namespace ka::rpc
