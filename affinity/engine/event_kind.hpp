// SPDX-License-Identifier: Apache-2.0
// The kinds of events that the daemon logs and GET /v1/events sends.
#pragma once

#include <string>
#include <string_view>

#include "policy/ledger/event.hpp"

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

/// What a source's event is called.
EventKind kind_of(const policy::ledger::EventBody& body);

/// The container that a source's event is about; empty where it is about none.
std::string container_of(const policy::ledger::EventBody& body);

}  // namespace ka::engine
