// SPDX-License-Identifier: Apache-2.0
// The kinds of events that the daemon logs and GET /v1/events sends.
#pragma once

#include <string_view>

namespace ka::engine {

enum class EventKind {
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
  kOverrideChanged,
  kVmmRefused,
  kSeen,
  kUnseen,
  kDrift,
  kLate,
  kUnmanaged,
  kTakenBack,
  kReleased,
  kCgroupWritten,
  kCgroupOverwritten,
  kShimNarrowed,
  kMemoryMoved,
  kSourceUp,
  kSourceDown,
  kGuestUp,
  kGuestDown,
  kStartWaiting,
  kStartLate,
  kStartComplete,
  kStateSaved,
  kStateUnsaved,
  kConfigured,
  kTopologyChanged,
};

enum class EventSeverity { kInfo, kWarning };

/// "container-updated", "sandbox-removed", ...: the names are fixed, programs select by them.
std::string_view event_name(EventKind kind);

/// kWarning: something that should not be, and that an operator may have to look after.
EventSeverity severity_of(EventKind kind);

}  // namespace ka::engine
