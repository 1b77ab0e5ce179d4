// SPDX-License-Identifier: Apache-2.0
// What the daemon notifies of: log, GET /v1/events, and its own parts.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "policy/ledger/event.hpp"
#include "policy/ledger/source.hpp"

namespace ka::board {

enum class NotificationKind {
  kSandboxUpdated,
  kSandboxAdopted,
  kSandboxEnded,
  kSandboxRemoved,
  kContainerUpdated,
  kContainerExited,
  kContainerRemoved,
  kContainerIsolated,
  kContainerNotIsolated,
  kKubeletChanged,
  kCpusContested,
  kCpusUncontested,
  kClaimsChanged,
  kClaimRefused,
  kOverrideChanged,
  kVmmRefused,
  kSeen,
  kUnseen,
  kDrift,
  kLate,
  kUnmanaged,
  kUnplaced,
  kPlaced,
  kTakenBack,
  kReleased,
  kCgroupWritten,
  kCgroupOverwritten,
  kShimNarrowed,
  kMemoryMoved,
  kSourceUp,
  kSourceDown,
  kSourceLate,
  kSourceInTime,
  kGuestUp,
  kGuestDown,
  kStartWaiting,
  kStartLate,
  kStartComplete,
  kStateSaved,
  kStateUnsaved,
  kConfigured,
  kTopologyChanged,
  kClassChanged,
  kClassRefused,
  kContainerAdopted,
  kContainerUnlisted,
  kCpusetWritten,
  kForeignCpuset,
  kForeignProcess,
  kOwnersChanged,
  kQuiet,
  kNotQuiet,
  kGradeRefused,
  kGuestWritten,    ///< internal: the saved state of the sandbox's guest changed
  kGuestChanged,    ///< internal: the board has another view of the sandbox's guest
  kSandboxPlanned,  ///< internal: a run of the line included the sandbox
  kLineRun,         ///< internal: a run of the line has ended
};

enum class Severity {
  kInternal,  ///< for the daemon's own parts: neither logged nor streamed
  kInfo,
  kWarning,  ///< an operator may have to act
};

/// "container-updated", "sandbox-removed", ...: the names are fixed, programs select by them.
std::string_view kind_name(NotificationKind kind);

Severity severity_of(NotificationKind kind);

/// What an event of a source is called.
NotificationKind kind_of(const policy::ledger::Event& event);

/// The container that an event of a source is about; empty where it is about none.
std::string container_of(const policy::ledger::EventBody& body);

struct Notification {
  std::uint64_t sequence = 0;  ///< of those that are not internal, from 1; 0: internal
  std::chrono::system_clock::time_point time;
  NotificationKind kind = NotificationKind::kConfigured;
  std::string sandbox;    ///< may be empty
  std::string container;  ///< may be empty
  std::string reason;     ///< the name of `source`, or the cause of a failure; may be empty
  std::optional<policy::ledger::Source> source;  ///< of the event; absent: it follows from none
  std::string text;                              ///< one sentence; empty where internal
};

}  // namespace ka::board
