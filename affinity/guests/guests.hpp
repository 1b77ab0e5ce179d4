// SPDX-License-Identifier: Apache-2.0
// The guests: finds each sandbox's agent, sends it the guest's part of the plan, and reads its
// reports. None of it is ever waited for but a container's start, and that for a bounded time.
//
// Each request to a guest is recorded before it is sent, and followed until it is undone, also
// after guests are no longer to be placed.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "affinity/board/feed.hpp"
#include "affinity/guests/guest_peer.hpp"
#include "affinity/guests/held_starts.hpp"
#include "affinity/guests/kata_peer.hpp"
#include "affinity/guests/our_peer.hpp"
#include "affinity/line/views.hpp"
#include "base/clock.hpp"
#include "base/log/log.hpp"
#include "base/rpc/timer.hpp"
#include "guest-agent/host/agent_url.hpp"
#include "guest-agent/host/measurement.hpp"
#include "guest-agent/protocol/latency.hpp"
#include "policy/plan/settings.hpp"
#include "vmm/facts/facts.hpp"

namespace ka::board {
class Board;
}
namespace ka::line {
class Line;
}

namespace ka::guests {

/// Must outlive the running of its io_context.
class Guests {
 public:
  /// All references must outlive it. Subscribes to the runs of the line.
  Guests(boost::asio::io_context& io, line::Line& line, board::Board& board,
         const vmm::Roots& roots, const log::Log& log, const base::Clock& clock);

  /// Calls `go_on` when the guest has the container on its vCPUs, or after HeldStarts::kBudget:
  /// then this guest is not waited for again, nor are others of the same kernel and image until one
  /// of them has placed a container. At once where there is no agent.
  void await(const std::string& sandbox, const std::string& container, std::function<void()> go_on);

  /// Measures latencies inside a guest that has our agent, and calls `done` with the result or the
  /// reason why there is none. One measurement a guest at a time.
  void measure(const std::string& sandbox, const guest::LatencyRequest& request,
               guest::Measurement::Done done);

 private:
  using Time = base::Clock::Time;

  /// Which agent places a guest's containers.
  ///
  /// | from       | to         | when                                                          |
  /// |------------|------------|---------------------------------------------------------------|
  /// | any        | kNone      | the setting, the VMM or the address that sources told changed |
  /// | kNone      | kSearching | nothing known names an address: Kata's shim is asked          |
  /// | kNone,     | kOurs      | an address is known, and our agent may be there               |
  /// | kSearching | kKata      | the same, and kata-agent is to do it                          |
  /// | kOurs      | kFallback  | ours does not answer, and the setting is "auto"               |
  /// | kFallback  | kOurs      | ours answers                                                  |
  enum class State {
    kNone,       ///< no agent's address is known
    kSearching,  ///< Kata's shim is asked for it
    kOurs,       ///< our agent
    kKata,       ///< kata-agent
    kFallback,   ///< kata-agent, until ours answers
  };

  struct Warning {
    std::string text, reason;
    bool is_of_kind = false;  ///< true of all guests of its kind
    bool by_kata = false;     ///< it is about kata-agent
  };
  /// The loss of an agent, which is logged when the timer runs out.
  struct Loss {
    Loss(boost::asio::io_context& io, const base::Clock& clock, Warning warning)
        : timer(io, clock), what(std::move(warning)) {}
    rpc::Timer timer;
    Warning what;
  };

  struct Guest {
    GuestRecord record;
    State state = State::kNone;
    std::optional<policy::plan::GuestAgent> through;  ///< absent until searched
    std::string named_address;             ///< what the sources reported when it was searched
    std::optional<policy::ProcessId> vmm;  ///< whose guest was searched
    std::string kernel, image;             ///< files, by which guests that are alike are known
    vmm::GuestBoot reported;               ///< what `record.boot` has from the VMM's monitor
    bool missed_a_start = false;
    std::unique_ptr<Loss> loss;  ///< until its agent answers again
    std::unique_ptr<guest::AgentUrl> search;
    std::unique_ptr<OurPeer> ours;
    std::unique_ptr<KataPeer> kata;

    /// The agent in charge; null: none.
    GuestPeer* peer() const;
    std::string kind() const;
  };
  /// What is remembered of all guests with one kernel and image.
  struct Kind {
    bool missed_a_start = false;  ///< that was logged
    bool is_silent = false;       ///< so was that: no agent ever answered
    bool is_forbidden = false;    ///< and that
    bool places = false;          ///< one of them has placed a container
  };
  /// A guest that is being released, with the time that it has for it.
  struct Leaving {
    Leaving(boost::asio::io_context& io, const base::Clock& clock) : timer(io, clock) {}
    std::variant<std::monostate, guest::Link, guest::KataLink> link;
    rpc::Timer timer;
  };

  void queue(const std::string& sandbox);
  void update_queued();
  void update(const std::string& sandbox, Time planned);
  Guest& known(const std::string& sandbox, const line::SandboxView& view);
  void find_agent(const std::string& sandbox, Guest& guest, const line::SandboxView& view);
  std::vector<std::string> command_line_of(const policy::ledger::PodRecord& pod) const;
  std::optional<guest::Address> known_address(const Guest& guest,
                                              const std::vector<std::string>& command_line,
                                              const policy::ledger::PodRecord& pod) const;
  std::optional<guest::Address> address_by(const std::vector<std::string>& command_line,
                                           const policy::ledger::PodRecord& pod) const;
  static void record_boot(Guest& guest, const vmm::GuestBoot& reported);
  void search(const std::string& sandbox, Guest& guest);
  void use(const std::string& sandbox, Guest& guest, const guest::Address& address);
  void use_ours(const std::string& sandbox, Guest& guest, const guest::Address& address);
  void use_kata(const std::string& sandbox, Guest& guest, const guest::Address& address);
  PeerEvents peer_events(const std::string& sandbox);

  void place(const std::string& sandbox, Guest& guest, const line::SandboxView& view, Time planned);
  void ours_answers(const std::string& sandbox);
  void ours_lost(const std::string& sandbox, const std::string& reason);
  void kata_lost(const std::string& sandbox, const std::string& reason);
  bool record_lost(const std::string& sandbox, Guest& guest, const std::string& reason);
  void fall_back(const std::string& sandbox, Guest& guest);
  void kata_answers(Guest& guest);
  void warn_later(const std::string& sandbox, Guest& guest, const Warning& what);
  void warn_of_loss(const std::string& sandbox, const Guest& guest);
  void warn_of_policy(const std::string& sandbox, const Guest& guest, const std::string& reason);
  void warn_of_numbers(const std::string& sandbox);
  void record_count(const std::string& sandbox);

  void changed(const std::string& sandbox);
  void show(const std::string& sandbox, Guest& guest);
  void drop(const std::string& sandbox);
  void forget(const std::string& sandbox);
  void release_guest(const GuestRecord& record);

  bool must_wait(const Guest& guest, const std::string& container) const;
  void start_is_late(const std::string& sandbox);
  void release_starts(const std::string& sandbox);

  boost::asio::io_context& io_;
  line::Line& line_;
  board::Board& board_;
  board::Subscription plans_;
  vmm::Roots roots_;
  const log::Log& log_;
  const base::Clock& clock_;
  /// Sandboxes to process in the loop's next turn, with the time of the request.
  std::map<std::string, Time> queued_;
  std::map<std::string, Guest> guests_;
  std::map<std::string, Kind> kinds_;        ///< by Guest::kind()
  std::set<std::string> uncertain_kernels_;  ///< whose vCPUs' numbers are not certain: logged
  HeldStarts starts_;
  std::list<Leaving> leaving_;
  std::map<std::string, std::unique_ptr<guest::Measurement>> measurements_;  ///< by sandbox
};

}  // namespace ka::guests
