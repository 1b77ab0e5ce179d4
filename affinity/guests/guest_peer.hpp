// SPDX-License-Identifier: Apache-2.0
// The agent that places the containers of one guest: ours, or kata-agent in its place. A peer sends
// what the plan means for the guest, and records the result.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "affinity/board/views.hpp"
#include "base/clock.hpp"
#include "guest-agent/address/address.hpp"
#include "policy/plan/guest_numbers.hpp"

namespace ka::guests {

/// One guest, as its peers know it and change it.
struct GuestRecord {
  board::GuestView view;
  policy::plan::BootFacts boot;
  policy::plan::GuestNumbers numbers;
};

/// What a peer reports, from the loop. No handler may destroy the peer.
struct PeerEvents {
  /// It answers, for the first time or again. Called before the peer records anything.
  std::function<void()> connected;
  /// The view has changed: show and save it before returning.
  std::function<void()> changed;
  /// The guest's part of the plan must be computed again.
  std::function<void()> outdated;
  /// It cannot be reached, or does not answer (any more); with the reason.
  std::function<void(const std::string& reason)> lost;
};

class GuestPeer {
 public:
  GuestPeer() = default;
  GuestPeer(const GuestPeer&) = delete;
  GuestPeer& operator=(const GuestPeer&) = delete;
  /// Closes the connection; nothing is reported after that.
  virtual ~GuestPeer() = default;

  virtual const guest::Address& address() const = 0;
  /// This peer takes over the record: entries of another peer are dropped, except requests to the
  /// guest and the order in which its vCPUs were plugged.
  virtual void adopt() = 0;
  /// Requests the record's spec from the guest, if new. `planned`: when they were planned.
  virtual void place(base::Clock::Time planned) = 0;
  /// Whether an answer about containers is pending.
  virtual bool will_answer() const = 0;
  /// Why it is not confirmed that the container, which the plan keeps apart, is in its place.
  /// Precondition: connected.
  virtual std::optional<policy::GuestDoubt> doubt_about(
      const policy::GuestContainer& container) const = 0;
  /// The guest has placed the container, or does not need to.
  virtual bool is_placed(const std::string& container) const = 0;
};

/// The guest's report on a container; null: none.
const policy::GuestContainerState* find_state(const GuestRecord& record,
                                              const std::string& container);

}  // namespace ka::guests
