// SPDX-License-Identifier: Apache-2.0
#include "affinity/engine/event_kind.hpp"

#include <cstddef>
#include <iterator>

namespace ka::engine {
namespace {

struct Row {
  EventKind kind;
  std::string_view name;
  EventSeverity severity;
};

/// In the order of EventKind.
constexpr Row kKinds[] = {
    {EventKind::kSandboxUpdated, "sandbox-updated", EventSeverity::kInfo},
    {EventKind::kSandboxAdopted, "sandbox-adopted", EventSeverity::kInfo},
    {EventKind::kSandboxEnded, "sandbox-ended", EventSeverity::kInfo},
    {EventKind::kSandboxRemoved, "sandbox-removed", EventSeverity::kInfo},
    {EventKind::kContainerUpdated, "container-updated", EventSeverity::kInfo},
    {EventKind::kContainerExited, "container-exited", EventSeverity::kInfo},
    {EventKind::kContainerRemoved, "container-removed", EventSeverity::kInfo},
    {EventKind::kContainerIsolated, "container-isolated", EventSeverity::kInfo},
    {EventKind::kContainerNotIsolated, "container-not-isolated", EventSeverity::kWarning},
    {EventKind::kKubeletChanged, "kubelet-changed", EventSeverity::kInfo},
    {EventKind::kOverrideChanged, "override-changed", EventSeverity::kInfo},
    {EventKind::kVmmRefused, "vmm-refused", EventSeverity::kInfo},
    {EventKind::kSeen, "seen", EventSeverity::kInfo},
    {EventKind::kUnseen, "unseen", EventSeverity::kWarning},
    {EventKind::kDrift, "drift", EventSeverity::kWarning},
    {EventKind::kLate, "late", EventSeverity::kWarning},
    {EventKind::kUnmanaged, "unmanaged", EventSeverity::kWarning},
    {EventKind::kTakenBack, "taken-back", EventSeverity::kInfo},
    {EventKind::kReleased, "released", EventSeverity::kInfo},
    {EventKind::kCgroupWritten, "cgroup-written", EventSeverity::kInfo},
    {EventKind::kCgroupOverwritten, "cgroup-overwritten", EventSeverity::kInfo},
    {EventKind::kShimNarrowed, "shim-narrowed", EventSeverity::kInfo},
    {EventKind::kMemoryMoved, "memory-moved", EventSeverity::kInfo},
    {EventKind::kSourceUp, "source-up", EventSeverity::kInfo},
    {EventKind::kSourceDown, "source-down", EventSeverity::kWarning},
    {EventKind::kGuestUp, "guest-up", EventSeverity::kInfo},
    {EventKind::kGuestDown, "guest-down", EventSeverity::kWarning},
    {EventKind::kStartWaiting, "start-waiting", EventSeverity::kWarning},
    {EventKind::kStartLate, "start-late", EventSeverity::kWarning},
    {EventKind::kStartComplete, "start-complete", EventSeverity::kInfo},
    {EventKind::kStateSaved, "state-saved", EventSeverity::kInfo},
    {EventKind::kStateUnsaved, "state-unsaved", EventSeverity::kWarning},
    {EventKind::kConfigured, "configured", EventSeverity::kInfo},
    {EventKind::kTopologyChanged, "topology-changed", EventSeverity::kInfo},
};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < std::size(kKinds); ++i) {
    if (kKinds[i].kind != static_cast<EventKind>(i)) return false;
  }
  return std::size(kKinds) == static_cast<std::size_t>(EventKind::kTopologyChanged) + 1;
}
static_assert(is_in_order());

const Row& row_of(EventKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

}  // namespace

std::string_view event_name(EventKind kind) { return row_of(kind).name; }

EventSeverity severity_of(EventKind kind) { return row_of(kind).severity; }

EventKind kind_of(const policy::ledger::EventBody& body) {
  struct Visitor {
    EventKind operator()(const policy::ledger::PodSeen&) const {
      return EventKind::kSandboxUpdated;
    }
    EventKind operator()(const policy::ledger::PodGone&) const {
      return EventKind::kSandboxRemoved;
    }
    EventKind operator()(const policy::ledger::ContainerSeen&) const {
      return EventKind::kContainerUpdated;
    }
    EventKind operator()(const policy::ledger::ContainerExited&) const {
      return EventKind::kContainerExited;
    }
    EventKind operator()(const policy::ledger::ContainerGone&) const {
      return EventKind::kContainerRemoved;
    }
    EventKind operator()(const policy::ledger::KubeletSeen&) const {
      return EventKind::kKubeletChanged;
    }
    EventKind operator()(const policy::ledger::OverrideSet&) const {
      return EventKind::kOverrideChanged;
    }
  };
  return std::visit(Visitor{}, body);
}

std::string container_of(const policy::ledger::EventBody& body) {
  if (const auto* seen = std::get_if<policy::ledger::ContainerSeen>(&body))
    return seen->container.id;
  if (const auto* exited = std::get_if<policy::ledger::ContainerExited>(&body))
    return exited->container;
  const auto* gone = std::get_if<policy::ledger::ContainerGone>(&body);
  return gone == nullptr ? std::string() : gone->container;
}

}  // namespace ka::engine
