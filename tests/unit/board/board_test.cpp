// SPDX-License-Identifier: Apache-2.0
// The board by itself: who is notified of what, and what is counted.
#include "affinity/board/board.hpp"

#include <cerrno>

#include "tests/catch.hpp"
#include "tests/test_clock.hpp"

using namespace ka;
using board::Board;
using board::Notification;
using board::NotificationKind;

namespace {

struct Scene {
  std::vector<std::string> kinds;
  tests::TestClock clock;
  Board board{clock};
  board::Subscription all = board.feed().subscribe([this](const Notification& notification) {
    kinds.emplace_back(board::kind_name(notification.kind));
  });
};

}  // namespace

TEST_CASE("notifications are numbered, except internal ones") {
  Scene scene;
  std::vector<std::uint64_t> sequences;
  const auto listening = scene.board.feed().subscribe(
      [&](const Notification& notification) { sequences.push_back(notification.sequence); });
  scene.board.notify(NotificationKind::kDrift, "s1", "text");
  scene.board.notify(NotificationKind::kLineRun, {}, {});
  scene.board.notify(NotificationKind::kSeen, "s1", "text");
  CHECK(sequences == std::vector<std::uint64_t>{1, 2});
  CHECK(scene.kinds == std::vector<std::string>{"drift", "seen"});
}

TEST_CASE("a subscription to one kind gets only that kind, also if internal, until it ends") {
  Scene scene;
  int runs = 0;
  auto listening = scene.board.feed().subscribe(NotificationKind::kLineRun,
                                                [&](const Notification&) { ++runs; });
  scene.board.notify(NotificationKind::kLineRun, {}, {});
  scene.board.notify(NotificationKind::kDrift, "s1", "text");
  CHECK(runs == 1);
  listening.reset();
  scene.board.notify(NotificationKind::kLineRun, {}, {});
  CHECK(runs == 1);
}

TEST_CASE("listeners are called in the order of subscription") {
  Scene scene;
  std::string order;
  const auto first =
      scene.board.feed().subscribe(NotificationKind::kDrift, [&](const auto&) { order += '1'; });
  const auto second = scene.board.feed().subscribe([&](const auto&) { order += '2'; });
  scene.board.notify(NotificationKind::kDrift, {}, "text");
  CHECK(order == "12");
}

TEST_CASE("a source's change of state is notified") {
  Scene scene;
  const auto source = policy::ledger::Source::kNri;
  scene.board.set_source(source, {false, "not connected yet"});
  scene.board.set_source(source, {true, "containerd"});
  scene.board.set_source(source, {true, "containerd"});
  CHECK(scene.kinds == std::vector<std::string>{"source-down", "source-up"});
  CHECK(scene.board.sources().at(source).up);
}

TEST_CASE("that a source is late is notified once per change, whatever its state") {
  Scene scene;
  const auto source = policy::ledger::Source::kKubelet;
  const base::Error full = base::system_error(ENOSPC, "cannot watch /var/lib/kubelet");
  scene.board.set_late(source, std::nullopt);
  CHECK(scene.kinds.empty());
  scene.board.set_late(source, full);
  scene.board.set_late(source, full);
  scene.board.set_source(source, {true, "static"});
  CHECK(scene.board.late().at(source) == full);
  scene.board.set_late(source, std::nullopt);
  scene.board.set_late(source, std::nullopt);
  CHECK(scene.kinds == std::vector<std::string>{"source-late", "source-up", "source-in-time"});
  CHECK(scene.board.late().empty());
}

TEST_CASE("the end of a pin's time is no source's event") {
  Scene scene;
  std::string reason;
  const auto subscription = scene.board.feed().subscribe(
      [&](const board::Notification& one) { reason = one.reason + (one.source ? "!" : ""); });
  policy::ledger::OverrideSet pin{.sandbox = "s1", .value = {}, .lasts_for = {}};
  scene.board.notify({policy::ledger::Source::kApi, pin}, "s1", "");
  CHECK(reason == "api!");
  pin.value.until = 7;
  scene.board.notify({policy::ledger::Source::kApi, pin}, "s1", "");
  CHECK(reason == "expired");
}

TEST_CASE("requests to a guest are notified before the guest's change") {
  Scene scene;
  scene.board.add_sandbox("s1");
  std::string order;
  const auto changed = scene.board.feed().subscribe(NotificationKind::kGuestChanged,
                                                    [&](const auto&) { order += 'c'; });
  const auto subscription = scene.board.feed().subscribe(NotificationKind::kGuestWritten,
                                                         [&](const auto&) { order += 't'; });
  board::GuestView guest;
  guest.address = "vsock:3";
  scene.board.set_guest("s1", guest);
  CHECK(order == "c");
  guest.writes.address = "vsock:3";
  guest.connected = true;
  scene.board.set_guest("s1", guest);
  CHECK(order == "ctc");
  scene.board.clear_guest("s1");
  CHECK(order == "ctctc");
  CHECK(scene.board.guest("s1") == nullptr);
  CHECK(scene.kinds == std::vector<std::string>{"guest-up"});
}

TEST_CASE("nothing is recorded for an unknown sandbox") {
  Scene scene;
  scene.board.set_guest("s1", {.address = "vsock:3", .text = ""});
  scene.board.set_memory("s1", {});
  CHECK(scene.board.guest("s1") == nullptr);
  scene.board.add_sandbox("s1");
  scene.board.set_memory("s1", {});
  CHECK(scene.board.memory("s1") != nullptr);
  scene.board.remove_sandbox("s1");
  CHECK(scene.board.memory("s1") == nullptr);
  CHECK(scene.kinds.empty());
}

TEST_CASE("a move of memory is counted once, at its end") {
  Scene scene;
  scene.board.add_sandbox("s1");
  board::MemoryView memory;
  memory.moving = true;
  memory.moved = 5 << 20;
  scene.board.set_memory("s1", memory);
  memory.moving = false;
  memory.failed = 1 << 20;
  scene.board.set_memory("s1", memory);
  CHECK(scene.board.counters().memory_moved == 5 << 20);
  CHECK(scene.board.counters().memory_failed == 1 << 20);
  CHECK(scene.kinds == std::vector<std::string>{"memory-moved"});
}

TEST_CASE("each field of an outcome goes to its own counter") {
  Scene scene;
  board::Outcome outcome{
      .runs = 1,
      .planned = 2,
      .writes = 3,
      .failed = 4,
      .gone = 5,
      .late = 6,
      .interrupts = 7,
      .cgroups = 8,
      .errors = {.permission = 9, .transient = 10, .other = 11, .unreadable = 12},
      .duration = std::chrono::milliseconds(3)};
  board::Outcome sum = outcome;
  sum += outcome;
  board::Counters counters;
  counters.record(sum);
  CHECK(counters.runs == 2);
  CHECK(counters.writes == 6);
  CHECK(counters.threads_gone == 10);
  CHECK(counters.late == 12);
  CHECK(counters.interrupt_writes == 14);
  CHECK(counters.cgroup_writes == 16);
  CHECK(
      counters.errors ==
      std::map<std::string, std::uint64_t>{
          {"permission", 18}, {"transient", 20}, {"other", 22}, {"unreadable", 24}, {"state", 0}});
  CHECK(counters.reactions.sum == 0.006);
  counters.record_drift(5, 2);
  CHECK(counters.drift_found == 5);
  CHECK(counters.drift_repaired == 3);
}
