// SPDX-License-Identifier: Apache-2.0
// Requests through the API: checked against the machine and against what is
// known before the line handles it. An error changes nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "affinity/board/outcome.hpp"
#include "affinity/line/line.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "policy/ledger/event.hpp"

namespace ka::line {

class Requests {
 public:
  /// Both must outlive it.
  Requests(const Node& node, Line& line) : node_(node), line_(line) {}

  /// Handles an event. A pin gets its time from the clock.
  base::Result<Outcome> submit(policy::ledger::Event event);
  /// Takes back the pins whose time has come: their threads are placed by the plan again.
  Outcome end_pins();
  /// When the next of them ends; empty: none has an end.
  std::optional<base::Clock::Time> next_pin_end() const;

  /// Line::reconcile() and release(), by id. kNotFound: no such sandbox.
  base::Result<Outcome> reconcile(std::string_view sandbox);
  base::Result<Outcome> release(std::string_view sandbox);

 private:
  base::Result<Sandbox*> find(std::string_view sandbox) const;
  base::Result<policy::ledger::Event> identified(policy::ledger::Event event) const;
  base::Result<void> check_removal(const std::string& id) const;
  base::Result<void> check_pin(const policy::ledger::OverrideSet& event) const;
  base::Result<void> check_lost(const policy::Override& given, const Sandbox& sandbox) const;
  void stamp(policy::ledger::OverrideSet& event) const;

  const Node& node_;
  Line& line_;
};

}  // namespace ka::line
