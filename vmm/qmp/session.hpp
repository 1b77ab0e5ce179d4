// SPDX-License-Identifier: Apache-2.0
// One QMP connection as a state machine: greeting, capabilities, commands matched by id, events.
// Bytes in, bytes and events out; the caller owns the socket (client.hpp, tests, the fuzzer).
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "vmm/qmp/message.hpp"

namespace ka::qmp {

/// Capabilities are negotiated: commands may be sent.
struct Ready {
  std::string version;
};

using News = std::variant<Ready, Answer, Event>;

class Session {
 public:
  struct Command {
    std::string id;
    std::string bytes;  ///< to be sent
  };

  struct Received {
    std::vector<News> news;
    std::string to_send;
  };

  /// Processes bytes from the server. An error ends the session: the server does not speak QMP,
  /// refuses the negotiation, or sends an unsolicited answer.
  base::Result<Received> feed(std::string_view bytes);

  bool ready() const { return state_ == State::kReady; }

  /// Precondition: ready().
  Command command(std::string_view name, const boost::json::object& arguments = {});

 private:
  /// kGreeting --greeting--> kNegotiating --qmp_capabilities answered--> kReady.
  /// An error of feed() ends the session in whichever it is.
  enum class State { kGreeting, kNegotiating, kReady };

  base::Result<void> handle(Message&& message, Received& received);
  base::Result<void> handle_greeting(const Greeting& greeting, Received& received);
  base::Result<void> handle_answer(Answer&& answer, Received& received);

  State state_ = State::kGreeting;
  Reader reader_;
  std::string version_;
  std::set<std::string> waiting_;
  unsigned long long next_id_ = 1;
};

}  // namespace ka::qmp
