// SPDX-License-Identifier: Apache-2.0
// The board: status of sources, guests, memory and grades, counters, and the feed of notifications.
// For readers only. It knows sandboxes by their ids alone.
//
// Single-threaded, as the line is.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "affinity/board/counters.hpp"
#include "affinity/board/feed.hpp"
#include "affinity/board/partition_view.hpp"
#include "affinity/board/power_view.hpp"
#include "affinity/board/quota_view.hpp"
#include "affinity/board/rdt_view.hpp"
#include "affinity/board/trespasses.hpp"
#include "affinity/board/views.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "policy/ledger/event.hpp"

namespace ka::board {

class Board {
 public:
  /// `clock` must outlive it.
  explicit Board(const base::Clock& clock) : clock_(clock) {}
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  ~Board() = default;

  Feed& feed() { return feed_; }
  Counters& counters() { return counters_; }
  const Counters& counters() const { return counters_; }
  Trespasses& trespasses() { return trespasses_; }
  const Trespasses& trespasses() const { return trespasses_; }

  /// Publishes on the feed, with the time of the clock.
  void notify(NotificationKind kind, std::string_view sandbox, std::string text,
              std::string reason = {}, std::string container = {});
  /// The same for the event of a source, which changed something of `sandbox`.
  void notify(const policy::ledger::Event& event, std::string_view sandbox, std::string text);

  /// Records the status of a source of events; notifies if it changed.
  void set_source(policy::ledger::Source source, SourceView view);
  const std::map<policy::ledger::Source, SourceView>& sources() const { return sources_; }

  /// Records why a source is read only at each drift check, and notifies if that changed; absent:
  /// it is notified of changes.
  void set_late(policy::ledger::Source source, const std::optional<base::Error>& why);
  const std::map<policy::ledger::Source, base::Error>& late() const { return late_; }

  /// There is a VM sandbox of this id: what is recorded of it is kept from now on.
  void add_sandbox(const std::string& id);
  /// It is gone, and everything recorded of it.
  void remove_sandbox(std::string_view id);
  /// The VM of one sandbox is another's: what is known of its guest goes with it.
  void hand_over_guest(const std::string& from, const std::string& to);

  /// Records the state of a sandbox's guest, and notifies: when this returns, the requests to the
  /// guest are in the state file. Does nothing for an unknown sandbox.
  void set_guest(const std::string& sandbox, GuestView view);
  /// Records a guest as it was known before a restart; without a notification.
  void restore_guest(const std::string& sandbox, GuestView view);
  /// No agent is connected any more, and nothing of ours is left in the guest.
  void clear_guest(const std::string& sandbox);
  /// Null: no agent is known. Valid until the next change.
  const GuestView* guest(std::string_view sandbox) const;

  /// Records where a sandbox's memory lies; counts and notifies when a move has ended. Does nothing
  /// for a sandbox that is not known.
  void set_memory(std::string_view sandbox, MemoryView view);
  /// Null until it was read. Valid until the next change.
  const MemoryView* memory(std::string_view sandbox) const;

  /// What grade = "quiet" has made of the host.
  void set_quiet(QuietView view) { quiet_ = std::move(view); }
  const QuietView& quiet() const { return quiet_; }

  /// Partitions of quiet sandboxes.
  void set_partitions(PartitionViews views) { partitions_ = std::move(views); }
  const PartitionViews& partitions() const { return partitions_; }
  /// Null: it is to have none. Valid until the next change.
  const PartitionView* partition(std::string_view sandbox) const {
    const auto found = partitions_.find(sandbox);
    return found == partitions_.end() ? nullptr : &found->second;
  }

  /// What pods' requests of their CPUs' power have come to.
  void set_power(PowerView view) { power_ = std::move(view); }
  const PowerView& power() const { return power_; }

  /// What pods' requests to have no CFS quota have come to.
  void set_quotas(QuotaView view) { quotas_ = std::move(view); }
  const QuotaView& quotas() const { return quotas_; }

  /// What RDT classes have come to.
  void set_rdt(RdtView view) { rdt_ = std::move(view); }
  const RdtView& rdt() const { return rdt_; }

  /// Counts a shim that was narrowed at this age, before its VMM was there, and notifies.
  void record_narrowed_shim(const std::string& sandbox, std::chrono::nanoseconds age);

 private:
  struct Entry {
    std::optional<GuestView> guest;
    std::optional<MemoryView> memory;
  };

  Entry* find(std::string_view sandbox);
  const Entry* find(std::string_view sandbox) const;

  const base::Clock& clock_;
  Feed feed_;
  Counters counters_;
  Trespasses trespasses_;
  std::map<policy::ledger::Source, SourceView> sources_;
  std::map<policy::ledger::Source, base::Error> late_;
  std::map<std::string, Entry, std::less<>> sandboxes_;
  QuietView quiet_;
  PartitionViews partitions_;
  PowerView power_;
  QuotaView quotas_;
  RdtView rdt_;
};

}  // namespace ka::board
