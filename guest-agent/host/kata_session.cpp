// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/host/kata_session.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/ttrpc/wire.hpp"

namespace ka::guest {
namespace {

constexpr std::string_view kKataService = "grpc.AgentService";

using ttrpc::Code;
using ttrpc::Reader;
using ttrpc::Writer;

/// UpdateContainerRequest{container_id 1, resources 2}, LinuxResources{CPU 3}, LinuxCPU{Cpus 6}.
/// All that is left out kata-agent leaves as it is.
std::string update_request(const KataAnswer& update) {
  Writer cpu;
  cpu.text(6, policy::format_list(update.cpus));
  Writer resources;
  resources.message(3, cpu.release());
  Writer request;
  request.text(1, update.container);
  request.message(2, resources.release());
  return request.release();
}

/// kata-agent answers INVALID_ARGUMENT for a container that it does not have, and PERMISSION_DENIED
/// where its policy forbids the call (src/agent/src/rpc.rs, policy.rs).
policy::GuestProblem problem_of(Code code) {
  if (code == Code::kOk) return policy::GuestProblem::kNone;
  return code == Code::kInvalidArgument ? policy::GuestProblem::kNotFound
                                        : policy::GuestProblem::kRefused;
}

/// How many CPUs lines like `kata_guest_cpu_time{cpu="1",item="user"} 70` name, from 0 on.
int count_cpus(std::string_view metrics) {
  constexpr std::string_view kLine = "kata_guest_cpu_time{cpu=\"";
  int count = 0;
  for (auto at = metrics.find(kLine); at != std::string_view::npos;
       at = metrics.find(kLine, at + 1)) {
    const std::string_view label = metrics.substr(at + kLine.size());
    int number = 0;
    const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), number);
    const bool is_number =
        error == std::errc{} && end != label.data() + label.size() && *end == '"';
    if (is_number && number >= 0 && std::cmp_less(number, kMaxCpus))
      count = std::max(count, number + 1);
  }
  return count;
}

bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace

KataSession::KataSession(Opening opening, std::uint32_t port) : opener_(opening, port) {}

std::string KataSession::start() {
  std::string out = opener_.first();
  if (out.empty()) request_details(out);
  return out;
}

void KataSession::request_details(std::string& out) {
  state_ = State::kIdentifying;
  call_ = Call::kDetails;
  send("GetGuestDetails", {}, out);
}

bool KataSession::fail(std::string reason) {
  failure_ = std::move(reason);
  return false;
}

bool KataSession::receive(std::string_view bytes, std::vector<KataAnswer>& answers,
                          std::string& out) {
  if (!failure_.empty()) return false;
  if (state_ == State::kOpening && !open(bytes, out)) return failure_.empty();
  decoder_.feed(bytes);
  while (const auto frame = decoder_.next()) {
    if (!handle(*frame, answers, out)) return false;
  }
  return true;
}

/// True once ttrpc begins.
bool KataSession::open(std::string_view& bytes, std::string& out) {
  if (!opener_.consume(bytes)) {
    return opener_.failure().empty() ? false : fail(std::string(opener_.failure()));
  }
  request_details(out);
  return true;
}

void KataSession::send(std::string_view method, std::string_view payload, std::string& out) {
  stream_ = std::exchange(next_stream_, next_stream_ + 2);
  out +=
      ttrpc::write_call(stream_, {.service = kKataService, .method = method, .payload = payload});
}

void KataSession::update(const std::string& container, const policy::GuestCpuSet& cpus,
                         std::string& out) {
  const bool under_way = ready() && stream_ != 0 && call_ == Call::kUpdate;
  // Only the last request for a container counts; one that was sent cannot be recalled.
  const auto waiting = updates_.begin() + (under_way && !updates_.empty() ? 1 : 0);
  updates_.erase(std::remove_if(waiting, updates_.end(),
                                [&container](const KataAnswer& known) {
                                  return known.container == container;
                                }),
                 updates_.end());
  updates_.push_back({container, cpus});
  send_next(out);
}

void KataSession::request_online(std::string& out) {
  online_requested_ = true;
  send_next(out);
}

void KataSession::send_next(std::string& out) {
  if (!ready() || stream_ != 0) return;
  if (!updates_.empty() && !forbidden_) {
    call_ = Call::kUpdate;
    send("UpdateContainer", update_request(updates_.front()), out);
  } else if (online_requested_) {
    call_ = Call::kMetrics;
    send("GetMetrics", {}, out);
  }
}

/// A call is answered once, and the next one is sent.
bool KataSession::handle(const ttrpc::Frame& frame, std::vector<KataAnswer>& answers,
                         std::string& out) {
  if (frame.header.type != ttrpc::kResponse) return fail("kata-agent sent a malformed response");
  if (frame.skipped()) return fail("kata-agent's response exceeds the limit");
  if (stream_ == 0 || frame.header.stream != stream_) {
    return fail("kata-agent sent an unsolicited response");
  }
  const auto answer = ttrpc::read_answer(frame.data);
  if (!answer) return fail("cannot parse kata-agent's response");
  stream_ = 0;
  ++answered_;
  if (!handle_answer(*answer, answers)) return false;
  send_next(out);
  return true;
}

bool KataSession::handle_answer(const ttrpc::Answer& answer, std::vector<KataAnswer>& answers) {
  switch (call_) {
    case Call::kDetails:
      // One that does not identify itself may still serve requests.
      if (answer.code == Code::kOk && !handle_details(answer.payload)) return false;
      state_ = State::kReady;
      return true;
    case Call::kUpdate:
      return handle_update(answer.code, answers);
    case Call::kMetrics:
      return handle_metrics(answer);
  }
  return true;
}

bool KataSession::handle_update(Code code, std::vector<KataAnswer>& answers) {
  if (code == Code::kPermissionDenied) {
    forbidden_ = true;
    return fail("kata-agent's policy forbids UpdateContainer");
  }
  KataAnswer done = std::move(updates_.front());
  updates_.pop_front();
  done.problem = problem_of(code);
  answers.push_back(std::move(done));
  return true;
}

/// Metrics{metrics 1}. A refusal leaves the count unknown.
bool KataSession::handle_metrics(const ttrpc::Answer& answer) {
  online_requested_ = false;
  if (answer.code != Code::kOk) return true;
  Reader response(answer.payload);
  while (const auto field = response.next()) {
    if (field->number == 1 && field->is_bytes) {
      most_online_ = std::max(most_online_, count_cpus(field->bytes));
    }
  }
  return response.good() || fail("cannot parse kata-agent's metrics");
}

/// GuestDetailsResponse{agent_details 2}, AgentDetails{version 1, init_daemon 2}.
bool KataSession::handle_details(std::string_view payload) {
  Reader response(payload);
  while (const auto field = response.next()) {
    if (field->number != 2 || !field->is_bytes) continue;
    Reader details(field->bytes);
    while (const auto detail = details.next()) {
      if (detail->number == 1 && detail->is_bytes && detail->bytes.size() <= kMaxName &&
          is_plain(detail->bytes)) {
        version_ = detail->bytes;
      }
      if (detail->number == 2 && !detail->is_bytes) is_init_ = detail->value != 0;
    }
    if (!details.good()) return fail("cannot parse kata-agent's guest details");
  }
  return response.good() || fail("cannot parse kata-agent's guest details");
}

}  // namespace ka::guest
