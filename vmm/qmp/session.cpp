// SPDX-License-Identifier: Apache-2.0
#include "vmm/qmp/session.hpp"

#include <utility>

namespace ka::qmp {
namespace {

constexpr std::string_view kNegotiation = "qmp_capabilities";

auto out_of_step(const std::string& what) {
  return base::fail(base::ErrorCode::kInvalid, "QMP server out of step: " + what);
}

}  // namespace

base::Result<Session::Received> Session::feed(std::string_view bytes) {
  auto messages = reader_.feed(bytes);
  if (!messages) return unexpected(std::move(messages.error()));
  Received received;
  for (Message& message : *messages) {
    if (auto handled = handle(std::move(message), received); !handled) {
      return unexpected(std::move(handled.error()));
    }
  }
  return received;
}

base::Result<void> Session::handle(Message&& message, Received& received) {
  if (const auto* greeting = std::get_if<Greeting>(&message)) {
    return handle_greeting(*greeting, received);
  }
  if (state_ == State::kGreeting) return out_of_step("no greeting");
  if (auto* answer = std::get_if<Answer>(&message)) {
    return handle_answer(std::move(*answer), received);
  }
  received.news.emplace_back(std::get<Event>(std::move(message)));
  return {};
}

base::Result<void> Session::handle_greeting(const Greeting& greeting, Received& received) {
  if (state_ != State::kGreeting) return out_of_step("a second greeting");
  version_ = greeting.version;
  state_ = State::kNegotiating;
  received.to_send += format_command(kNegotiation, {}, kNegotiation);
  return {};
}

base::Result<void> Session::handle_answer(Answer&& answer, Received& received) {
  if (state_ == State::kNegotiating) {
    if (answer.id != kNegotiation) return out_of_step("a response before the negotiation");
    if (!answer.result) return unexpected(std::move(answer.result.error()));
    state_ = State::kReady;
    received.news.emplace_back(Ready{version_});
    return {};
  }
  if (waiting_.erase(answer.id) == 0) return out_of_step("an unsolicited response");
  received.news.emplace_back(std::move(answer));
  return {};
}

Session::Command Session::command(std::string_view name, const boost::json::object& arguments) {
  Command command{.id = std::to_string(next_id_++), .bytes = {}};
  command.bytes = format_command(name, arguments, command.id);
  waiting_.insert(command.id);
  return command;
}

}  // namespace ka::qmp
