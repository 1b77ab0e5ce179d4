// SPDX-License-Identifier: Apache-2.0
// The host's side of a conversation with a guest agent, without I/O. The peer is hostile: whatever
// it sends that was not asked for, is out of range, names what is not its own or is malformed
// ends the conversation. Nothing is held of it but one frame.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/ttrpc/frame.hpp"
#include "guest-agent/host/opener.hpp"
#include "guest-agent/protocol/messages.hpp"
#include "policy/facts/guest.hpp"

namespace ka::guest {

/// A report of the agent.
struct News {
  policy::GuestReport report;
  bool answers_spec = false;  ///< it answers the last request
};

class Session {
 public:
  /// `port`: for kConnect.
  explicit Session(Opening opening, std::uint32_t port = kPort);

  /// What to send first.
  std::string start();

  /// Processes bytes; appends to `news`, and bytes to send to `out`. False: the session is over,
  /// failure() has the reason, without text from the peer.
  bool receive(std::string_view bytes, std::vector<News>& news, std::string& out);

  /// What the guest is to do: sent at once, or when the one before is answered. Only
  /// the last one counts.
  void apply(policy::GuestSpec spec, std::string& out);
  /// Asks for changes; nothing while a request for them is pending.
  void watch(std::string& out);

  /// The handshake is done, in a version that this build supports.
  bool ready() const { return stage_ == Stage::kReady; }
  /// An answer is due: it has to come within kDeadline.
  bool is_owed() const;
  /// Counts the calls that were answered within it.
  std::uint64_t answered() const { return answered_; }
  /// The agent's name and version.
  const std::string& program() const { return program_; }
  const std::string& failure() const { return failure_; }

 private:
  /// kOpening --ttrpc begins--> kHello --answered, in a version that both speak--> kReady.
  /// Any --fail()--> kFailed, for good.
  enum class Stage { kOpening, kHello, kReady, kFailed };

  bool fail(std::string reason);
  void hello(std::string& out);
  bool open(std::string_view& bytes, std::string& out);
  bool handle(const ttrpc::Frame& frame, std::vector<News>& news, std::string& out);
  bool handle_hello(std::string_view payload, std::string& out);
  bool handle_report(std::string_view payload, bool applied, std::vector<News>& news);
  std::string check(const policy::GuestReport& report) const;
  std::uint32_t send(std::string_view method, std::string_view payload, std::string& out);
  void send_spec(std::string& out);

  Opener opener_;
  Stage stage_ = Stage::kOpening;
  std::string failure_;
  std::string program_;
  ttrpc::Decoder decoder_{kMaxMessage};
  std::uint32_t next_stream_ = 1;
  std::uint64_t answered_ = 0;
  std::uint32_t hello_ = 0;  ///< streams of calls that are not answered; 0: none
  std::uint32_t apply_ = 0;
  std::uint32_t watch_ = 0;
  std::uint64_t generation_ = 0;  ///< of the last report
  std::optional<policy::GuestSpec> next_spec_;
  std::set<std::string> applied_ids_;  ///< containers of the spec that was answered last
  std::set<std::string> sent_ids_;     ///< and of those that were sent last
};

}  // namespace ka::guest
