// SPDX-License-Identifier: Apache-2.0
#include "affinity/board/board.hpp"

#include <utility>

#include "affinity/messages/events.hpp"

namespace ka::board {

using Kind = NotificationKind;

void Board::notify(Kind kind, std::string_view sandbox, std::string text, std::string reason,
                   std::string container) {
  feed_.publish({.time = clock_.wall(),
                 .kind = kind,
                 .sandbox = std::string(sandbox),
                 .container = std::move(container),
                 .reason = std::move(reason),
                 .text = std::move(text)});
}

void Board::notify(const policy::ledger::Event& event, std::string_view sandbox, std::string text) {
  if (messages::is_expiry(event)) {
    return notify(kind_of(event), sandbox, std::move(text), "expired");
  }
  feed_.publish({.time = clock_.wall(),
                 .kind = kind_of(event),
                 .sandbox = std::string(sandbox),
                 .container = container_of(event.body),
                 .reason = std::string(policy::ledger::source_name(event.source)),
                 .source = event.source,
                 .text = std::move(text)});
}

void Board::set_source(policy::ledger::Source source, SourceView view) {
  SourceView& known = sources_[source];
  if (known == view) return;
  known = std::move(view);
  notify(known.up ? Kind::kSourceUp : Kind::kSourceDown, {},
         std::string(policy::ledger::source_name(source)) + ": " + known.text,
         known.up ? "" : known.text);
}

void Board::set_late(policy::ledger::Source source, const std::optional<base::Error>& why) {
  const auto known = late_.find(source);
  const bool is_known = known == late_.end() ? !why : why == known->second;
  if (is_known) return;
  const std::string name(policy::ledger::source_name(source));
  if (why) {
    late_.insert_or_assign(source, *why);
    notify(Kind::kSourceLate, {}, name + " is read only at each drift check: " + why->message,
           why->message);
  } else {
    late_.erase(known);
    notify(Kind::kSourceInTime, {}, name + " is notified of changes");
  }
}

void Board::add_sandbox(const std::string& id) { sandboxes_.try_emplace(id); }

void Board::remove_sandbox(std::string_view id) {
  trespasses_.forget(id);
  if (const auto known = sandboxes_.find(id); known != sandboxes_.end()) sandboxes_.erase(known);
}

void Board::hand_over_guest(const std::string& from, const std::string& to) {
  const Entry* before = find(from);
  if (before == nullptr || !before->guest || sandboxes_.contains(to)) return;
  add_sandbox(to);
  restore_guest(to, {.address = before->guest->address,
                     .text = "not connected yet",
                     .writes = before->guest->writes,
                     .plugged = before->guest->plugged});
}

void Board::set_guest(const std::string& sandbox, GuestView view) {
  Entry* entry = find(sandbox);
  if (entry == nullptr) return;
  const GuestView before = std::exchange(entry->guest, std::move(view)).value_or(GuestView{});
  const GuestView& now = *entry->guest;
  if (before.writes != now.writes || before.plugged != now.plugged)
    notify(Kind::kGuestWritten, sandbox, {});
  notify(Kind::kGuestChanged, sandbox, {});
  // One whose agent has not answered yet is not down: each VM that boots is like that.
  if (before.connected == now.connected) return;
  notify(now.connected ? Kind::kGuestUp : Kind::kGuestDown, sandbox, now.address + ": " + now.text,
         now.connected ? "" : now.text);
}

void Board::restore_guest(const std::string& sandbox, GuestView view) {
  if (Entry* entry = find(sandbox)) entry->guest = std::move(view);
}

void Board::clear_guest(const std::string& sandbox) {
  Entry* entry = find(sandbox);
  if (entry == nullptr || !std::exchange(entry->guest, std::nullopt)) return;
  notify(Kind::kGuestWritten, sandbox, {});
  notify(Kind::kGuestChanged, sandbox, {});
}

const GuestView* Board::guest(std::string_view sandbox) const {
  const Entry* entry = find(sandbox);
  return entry == nullptr || !entry->guest ? nullptr : &*entry->guest;
}

void Board::set_memory(std::string_view sandbox, MemoryView view) {
  Entry* entry = find(sandbox);
  if (entry == nullptr) return;
  if (!view.moving && view.moved + view.failed > 0) {
    counters_.memory_moved += view.moved;
    counters_.memory_failed += view.failed;
    constexpr std::uint64_t kMib = 1 << 20;
    notify(Kind::kMemoryMoved, sandbox,
           std::to_string(view.moved / kMib) + " MiB of memory migrated, " +
               std::to_string(view.failed / kMib) + " MiB failed");
  }
  entry->memory = std::move(view);
}

const MemoryView* Board::memory(std::string_view sandbox) const {
  const Entry* entry = find(sandbox);
  return entry == nullptr || !entry->memory ? nullptr : &*entry->memory;
}

void Board::record_narrowed_shim(const std::string& sandbox, std::chrono::nanoseconds age) {
  counters_.narrowed_shims.add(age);
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(age).count();
  notify(Kind::kShimNarrowed, sandbox,
         "shim narrowed " + std::to_string(milliseconds) + " ms after its start");
}

Board::Entry* Board::find(std::string_view sandbox) {
  const auto known = sandboxes_.find(sandbox);
  return known == sandboxes_.end() ? nullptr : &known->second;
}

const Board::Entry* Board::find(std::string_view sandbox) const {
  const auto known = sandboxes_.find(sandbox);
  return known == sandboxes_.end() ? nullptr : &known->second;
}

}  // namespace ka::board
