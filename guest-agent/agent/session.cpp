// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/session.hpp"

#include <utility>

#include "guest-agent/protocol/messages.hpp"

namespace ka::agent {
namespace {

using ttrpc::Code;

void answer(std::uint32_t stream, std::string_view payload, std::string& out) {
  out += ttrpc::write_answer(stream, {.code = Code::kOk, .message = {}, .payload = payload});
}

void refuse(std::uint32_t stream, Code code, std::string_view message, std::string& out) {
  out += ttrpc::write_answer(stream, {.code = code, .message = message, .payload = {}});
}

guest::Hello ours() { return {.program = "kata-affinity-agent " KA_VERSION}; }

}  // namespace

bool Session::receive(std::string_view bytes, std::string& out) {
  decoder_.feed(bytes);
  while (const auto frame = decoder_.next()) {
    if (!handle(*frame, out)) return false;
  }
  return true;
}

bool Session::handle(const ttrpc::Frame& frame, std::string& out) {
  const std::uint32_t stream = frame.header.stream;
  if (frame.header.type != ttrpc::kRequest || stream % 2 == 0 || stream <= last_stream_) {
    return false;
  }
  last_stream_ = stream;
  if (frame.skipped()) {
    refuse(stream, Code::kResourceExhausted, "the request is too large", out);
    return false;
  }
  const auto call = ttrpc::read_call(frame.data);
  if (!call) return false;
  if (call->service != guest::kService) {
    refuse(stream, Code::kUnimplemented, "unknown service", out);
    return true;
  }
  if (call->method == "Hello") return hello(stream, call->payload, out);
  if (!greeted_) {
    refuse(stream, Code::kFailedPrecondition, "Hello must come first", out);
    return true;
  }
  if (call->method == "Apply") return apply(stream, call->payload, out);
  if (call->method == "Watch") return watch(stream, call->payload, out);
  if (call->method == "Container") return container(stream, call->payload, out);
  if (call->method == "Measure") return measure(stream, call->payload, out);
  refuse(stream, Code::kUnimplemented, "unknown method", out);
  return true;
}

/// A host that is too old or too new gets our version, and can report it.
bool Session::hello(std::uint32_t stream, std::string_view payload, std::string& out) {
  const auto theirs = guest::decode_hello(payload);
  if (!theirs) return false;
  greeted_ = guest::common_version(ours(), *theirs).has_value();
  answer(stream, guest::encode(ours()), out);
  return true;
}

bool Session::apply(std::uint32_t stream, std::string_view payload, std::string& out) {
  auto spec = guest::decode_spec(payload);
  if (!spec) {
    refuse(stream, Code::kInvalidArgument, "malformed request", out);
    return false;
  }
  answer(stream, guest::encode(agent_.apply(std::move(*spec))), out);
  return true;
}

bool Session::watch(std::uint32_t stream, std::string_view payload, std::string& out) {
  const auto generation = guest::decode_watch(payload);
  if (!generation || watching_ != 0) return false;
  watching_ = stream;
  known_ = *generation;
  notify(out);
  return true;
}

bool Session::container(std::uint32_t stream, std::string_view payload, std::string& out) {
  const auto news = guest::decode_container(payload);
  if (!news) {
    refuse(stream, Code::kInvalidArgument, "malformed request", out);
    return false;
  }
  agent_.record_container(news->id, news->stopped);
  answer(stream, {}, out);
  return true;
}

bool Session::measure(std::uint32_t stream, std::string_view payload, std::string& out) {
  const auto request = guest::decode_latency_request(payload);
  if (!request) {
    refuse(stream, Code::kInvalidArgument, "malformed request", out);
    return false;
  }
  const auto number = measuring_ == 0 ? agent_.measure(*request) : std::nullopt;
  if (number) {
    measuring_ = stream;
    measurement_ = *number;
  } else {
    refuse(stream, Code::kFailedPrecondition, "another measurement, or no such CPU", out);
  }
  return true;
}

void Session::notify_measured(std::string& out) {
  if (measuring_ == 0) return;
  const auto result = agent_.meter().result(measurement_);
  if (!result) return;
  const std::uint32_t stream = std::exchange(measuring_, 0);
  if (result->empty()) return refuse(stream, Code::kInternal, "the measurement failed", out);
  answer(stream, *result, out);
}

void Session::notify(std::string& out) {
  notify_measured(out);
  if (watching_ == 0 || agent_.report().generation == known_) return;
  answer(std::exchange(watching_, 0), guest::encode(agent_.report()), out);
}

}  // namespace ka::agent
