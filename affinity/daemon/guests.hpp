// SPDX-License-Identifier: Apache-2.0
// The guests: each sandbox's agent is found, told what the plan means for it, and listened to. None
// of it is ever waited for but a container's start, and that for a bounded time.
//
// What a guest is told is recorded first, and followed until it is taken back: a container that
// kata-agent was once told about is told again whenever vCPUs come or go, also when nobody wants
// guests to be placed any more, since kata-agent cannot clear a cpuset.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "affinity/board/feed.hpp"
#include "affinity/board/views.hpp"
#include "affinity/engine/views.hpp"
#include "base/clock.hpp"
#include "base/log/log.hpp"
#include "base/rpc/timer.hpp"
#include "guest-agent/host/agent_url.hpp"
#include "guest-agent/host/kata_link.hpp"
#include "guest-agent/host/link.hpp"
#include "policy/plan/guest_numbers.hpp"
#include "policy/plan/settings.hpp"
#include "vmm/facts/facts.hpp"

namespace ka::board {
class Board;
}
namespace ka::engine {
class Engine;
}

namespace ka::daemon {

/// Must outlive the running of its io_context.
class Guests {
 public:
  /// A container's start waits no longer for its guest.
  static constexpr std::chrono::milliseconds kStartBudget{200};

  /// All references must outlive it. Subscribes to the runs of the line. `run`: where Kata's shims
  /// keep their sockets (/run).
  Guests(boost::asio::io_context& io, engine::Engine& engine, board::Board& board,
         const vmm::Roots& roots, std::filesystem::path run, const log::Log& log,
         const base::Clock& clock);

  /// Calls `go_on` when the guest has the container on its vCPUs, or after kStartBudget: then this
  /// guest is not waited for again. At once where there is no agent.
  void await(const std::string& sandbox, const std::string& container, std::function<void()> go_on);

 private:
  using Time = std::chrono::steady_clock::time_point;

  struct Guest {
    board::GuestView view;
    std::optional<policy::plan::GuestAgent> through;  ///< absent until it is looked for
    std::string told_address;              ///< what the sources said of it when it was looked for
    std::optional<policy::ProcessId> vmm;  ///< whose guest was looked for
    std::unique_ptr<guest::AgentUrl> looking;
    std::unique_ptr<guest::Link> link;      ///< to our agent
    std::unique_ptr<guest::KataLink> kata;  ///< to Kata's, where it takes the place of ours
    std::string kata_name;                  ///< what it calls itself
    policy::plan::BootFacts boot;
    std::string kernel;                  ///< its image, by which guests that are alike are known
    policy::plan::GuestNumbers numbers;  ///< for `kata`
    policy::plan::GuestNumbers asked_numbers;  ///< those of when it was asked last
    policy::GuestSets kata_sets;               ///< what it was asked then
    bool wished = false;                       ///< an answer about its containers is to be expected
    std::optional<Time> asked;                 ///< when what it has not answered yet was planned
    bool missed_a_start = false;
  };
  struct Waiting {
    explicit Waiting(boost::asio::io_context& io) : timer(io) {}
    std::string sandbox;
    std::string container;
    std::function<void()> go_on;
    rpc::Timer timer;
  };
  /// One that is told to give everything back, and given the time for it.
  struct Leaving {
    std::unique_ptr<guest::Link> link;
    std::unique_ptr<guest::KataLink> kata;
    std::unique_ptr<boost::asio::steady_timer> timer;
  };

  void notice(const std::string& sandbox);
  void follow_noticed();
  void follow(const std::string& sandbox, Time planned);
  Guest& known(const std::string& sandbox, const engine::SandboxView& view);
  void look_for(const std::string& sandbox, Guest& guest, const engine::SandboxView& view);
  std::vector<std::string> command_line_of(const policy::ledger::PodRecord& pod) const;
  std::optional<guest::Address> address_by(const std::vector<std::string>& command_line,
                                           const policy::ledger::PodRecord& pod) const;
  void use(const std::string& sandbox, Guest& guest, const guest::Address& address);
  void met(const std::string& sandbox, const std::string& program);
  void wish(const std::string& sandbox, Guest& guest, const engine::SandboxView& view,
            Time planned);
  void take(const std::string& sandbox, const guest::News& news);
  void lost(const std::string& sandbox, const std::string& reason);
  void fall_back(const std::string& sandbox, Guest& guest);
  void use_kata(const std::string& sandbox, Guest& guest, const guest::Address& address);
  void wish_through_kata(const std::string& sandbox, Guest& guest);
  void note_doubt(const std::string& sandbox, Guest& guest);
  void forget_gone(Guest& guest);
  void lost_kata(const std::string& sandbox, const std::string& reason);
  void take_from_kata(const std::string& sandbox);
  void take_count_from_kata(const std::string& sandbox);
  void show(const std::string& sandbox, Guest& guest);
  std::optional<policy::GuestDoubt> doubt_about(const Guest& guest,
                                                const policy::GuestContainer& container) const;
  void drop(const std::string& sandbox);
  void forget(const std::string& sandbox);
  void bid_farewell(const Guest& guest);
  void let_starts_go_on(const std::string& sandbox);
  bool is_placed(const Guest& guest, const std::string& container) const;
  bool may_await(const Guest& guest, const std::string& container) const;

  boost::asio::io_context& io_;
  engine::Engine& engine_;
  board::Board& board_;
  board::Subscription plans_;
  vmm::Roots roots_;
  std::filesystem::path run_;
  const log::Log& log_;
  const base::Clock& clock_;
  /// Sandboxes that are looked at in the loop's next turn, and since when they are to be.
  std::map<std::string, Time> noticed_;
  std::map<std::string, Guest> guests_;
  std::list<Waiting> waiting_;
  std::list<Leaving> leaving_;
  std::set<std::string> said_;  ///< by kernel image: whose numbers were said to be uncertain
};

}  // namespace ka::daemon
