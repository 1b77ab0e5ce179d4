// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/host/measurement.hpp"

#include <algorithm>
#include <utility>

#include "base/ttrpc/envelope.hpp"
#include "guest-agent/host/connect.hpp"
#include "guest-agent/protocol/messages.hpp"

namespace ka::guest {
namespace {

using base::ErrorCode;

constexpr std::uint32_t kHelloStream = 1, kMeasureStream = 3;
constexpr std::chrono::seconds kGrace{5};

std::string call(std::uint32_t stream, std::string_view method, std::string_view payload) {
  return ttrpc::write_call(stream, {.service = kService, .method = method, .payload = payload});
}

}  // namespace

MeasurementSession::MeasurementSession(LatencyRequest request, Opening opening, std::uint32_t port)
    : request_(std::move(request)), opener_(opening, port) {}

std::string MeasurementSession::start() {
  std::string out = opener_.first();
  if (out.empty()) hello(out);
  return out;
}

void MeasurementSession::hello(std::string& out) {
  state_ = State::kHello;
  out += call(kHelloStream, "Hello", encode(Hello{.program = "kata-affinityd"}));
}

void MeasurementSession::fail(ErrorCode code, const std::string& reason) {
  result_ = base::fail(code, reason);
}

void MeasurementSession::receive(std::string_view bytes, std::string& out) {
  if (state_ == State::kOpening) {
    if (!opener_.consume(bytes)) return check_opener();
    hello(out);
  }
  decoder_.feed(bytes);
  while (!result_) {
    const auto frame = decoder_.next();
    if (!frame) return;
    handle(*frame, out);
  }
}

void MeasurementSession::check_opener() {
  const std::string_view failure = opener_.failure();
  if (!failure.empty()) fail(ErrorCode::kUnavailable, std::string(failure));
}

void MeasurementSession::handle(const ttrpc::Frame& frame, std::string& out) {
  const bool measuring = state_ == State::kMeasuring;
  const bool is_due = frame.header.stream == (measuring ? kMeasureStream : kHelloStream);
  if (frame.header.type != ttrpc::kResponse || frame.skipped() || !is_due) {
    return fail(ErrorCode::kUnavailable, "the agent sent a malformed or unsolicited response");
  }
  const auto answer = ttrpc::read_answer(frame.data);
  if (!answer) return fail(ErrorCode::kUnavailable, "cannot parse the agent's response");
  switch (answer->code) {
    case ttrpc::Code::kOk:
      return measuring ? handle_latencies(answer->payload) : handle_hello(answer->payload, out);
    case ttrpc::Code::kUnimplemented:
      return fail(ErrorCode::kUnavailable,
                  "the guest has no kata-affinity-agent, or one that cannot measure yet");
    case ttrpc::Code::kFailedPrecondition:
      return fail(ErrorCode::kConflict, "the agent measures already, or lacks one of the CPUs");
    default:
      return fail(ErrorCode::kUnavailable,
                  "the agent refused a call: code " +
                      std::to_string(static_cast<std::int32_t>(answer->code)));
  }
}

void MeasurementSession::handle_hello(std::string_view payload, std::string& out) {
  const auto theirs = decode_hello(payload);
  if (!theirs || !common_version({}, *theirs)) {
    return fail(ErrorCode::kUnavailable, "the agent speaks another version of the protocol");
  }
  state_ = State::kMeasuring;
  out += call(kMeasureStream, "Measure", encode(request_));
}

void MeasurementSession::handle_latencies(std::string_view payload) {
  auto latencies = decode_latencies(payload);
  if (!latencies || !is_as_requested(*latencies)) {
    return fail(ErrorCode::kUnavailable, "the agent's response is malformed, or about other CPUs");
  }
  result_ = std::move(*latencies);
}

bool MeasurementSession::is_as_requested(const Latencies& latencies) const {
  return std::ranges::equal(latencies.cpus, request_.hardware_ids, {}, &CpuLatency::hardware_id);
}

Measurement::Measurement(boost::asio::io_context& io, const base::Clock& clock,
                         const Address& address, const LatencyRequest& request, Done done)
    : request_(request),
      done_(std::move(done)),
      limit_(io, clock),
      connection_(io, clock, address,
                  {.begun = [this] { begin(); },
                   .bytes = [this](std::string_view bytes) { receive(bytes); },
                   .ended = [] {},
                   .lost =
                       [this](const std::string& reason) {
                         finish(base::fail(ErrorCode::kUnavailable, reason));
                       }},
                  {}) {
  limit_.in(request.duration + kGrace, [this] {
    finish(base::fail(ErrorCode::kUnavailable, "no response from the agent in time"));
  });
}

void Measurement::begin() {
  session_.emplace(request_, opening_of(connection_.address()), connection_.address().port);
  connection_.send(session_->start());
}

void Measurement::receive(std::string_view bytes) {
  std::string out;
  session_->receive(bytes, out);
  if (session_->result()) return finish(*session_->result());
  connection_.send(std::move(out));
}

void Measurement::finish(base::Result<Latencies> result) {
  if (const Done done = std::exchange(done_, {})) done(std::move(result));
}

}  // namespace ka::guest
