// SPDX-License-Identifier: Apache-2.0
// A conversation with kata-agent itself, without I/O: ttrpc, the service grpc.AgentService, of
// which three calls are needed (kata-containers, src/libs/protocols/protos/agent.proto and
// oci.proto; the messages are written by their field numbers). Its guest is as hostile as ours: one
// call at a time, a bound for each answer, and an unsolicited answer ends it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ttrpc/envelope.hpp"
#include "base/ttrpc/frame.hpp"
#include "guest-agent/host/opener.hpp"
#include "policy/facts/guest.hpp"

namespace ka::guest {

/// What came of one container.
struct KataAnswer {
  std::string container;
  policy::GuestCpuSet cpus;  ///< what was asked for
  policy::GuestProblem problem = policy::GuestProblem::kNone;
};

class KataSession {
 public:
  /// `port`: for Opening::kConnect.
  explicit KataSession(Opening opening, std::uint32_t port);

  /// What to send first.
  std::string start();
  /// Processes bytes; appends answers, and bytes to send to `out`. False: it is over, failure()
  /// has the reason.
  bool receive(std::string_view bytes, std::vector<KataAnswer>& answers, std::string& out);
  /// Sends UpdateContainer with these guest CPUs, in its turn.
  void update(const std::string& container, const policy::GuestCpuSet& cpus, std::string& out);

  /// Asks how many CPUs the guest has online, in its turn.
  void request_online(std::string& out);

  /// It has identified itself.
  bool ready() const { return state_ == State::kReady; }
  /// An answer is due.
  bool is_owed() const { return stream_ != 0 || !ready(); }
  /// Counts answers.
  std::uint64_t answered() const { return answered_; }
  const std::string& version() const { return version_; }
  /// It is the guest's first program, and so does not leave cgroups to systemd.
  bool is_init() const { return is_init_; }
  /// The most CPUs that the guest was ever seen to have online, by GetMetrics: kata-agent counts
  /// the lines of /proc/stat, and never takes one back (src/agent/src/metrics.rs). 0: not
  /// reported.
  int most_online() const { return most_online_; }
  /// request_online() was not answered yet.
  bool awaits_online() const { return online_requested_; }
  /// Its policy forbids the call: no use to try again.
  bool is_forbidden() const { return forbidden_; }
  const std::string& failure() const { return failure_; }

 private:
  /// kOpening --ttrpc begins--> kIdentifying --GetGuestDetails answered--> kReady.
  /// What fails stays where it was, and receives nothing more (failure_).
  enum class State { kOpening, kIdentifying, kReady };
  enum class Call { kDetails, kUpdate, kMetrics };

  bool fail(std::string reason);
  void request_details(std::string& out);
  bool open(std::string_view& bytes, std::string& out);
  bool handle(const ttrpc::Frame& frame, std::vector<KataAnswer>& answers, std::string& out);
  bool handle_details(std::string_view payload);
  void send(std::string_view method, std::string_view payload, std::string& out);
  void send_next(std::string& out);
  bool handle_answer(const ttrpc::Answer& answer, std::vector<KataAnswer>& answers);
  bool handle_update(ttrpc::Code code, std::vector<KataAnswer>& answers);
  bool handle_metrics(const ttrpc::Answer& answer);

  Opener opener_;
  State state_ = State::kOpening;
  bool forbidden_ = false;
  bool is_init_ = false;
  std::string version_;
  std::string failure_;
  ttrpc::Decoder decoder_{kMaxMessage};
  std::uint32_t next_stream_ = 1;
  std::uint32_t stream_ = 0;    ///< of the call that is not answered; 0: none
  Call call_ = Call::kDetails;  ///< that one
  bool online_requested_ = false;
  int most_online_ = 0;
  std::uint64_t answered_ = 0;
  std::deque<KataAnswer> updates_;  ///< the first of them is on its way once we are ready
};

}  // namespace ka::guest
