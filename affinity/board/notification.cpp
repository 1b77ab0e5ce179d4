// SPDX-License-Identifier: Apache-2.0
#include "affinity/board/notification.hpp"

#include <cstddef>
#include <iterator>
#include <variant>

namespace ka::board {
namespace {

using Kind = NotificationKind;

struct Row {
  Kind kind;
  std::string_view name;
  Severity severity;
};

/// In the order of NotificationKind.
constexpr Row kKinds[] = {
    {Kind::kSandboxUpdated, "sandbox-updated", Severity::kInfo},
    {Kind::kSandboxAdopted, "sandbox-adopted", Severity::kInfo},
    {Kind::kSandboxEnded, "sandbox-ended", Severity::kInfo},
    {Kind::kSandboxRemoved, "sandbox-removed", Severity::kInfo},
    {Kind::kContainerUpdated, "container-updated", Severity::kInfo},
    {Kind::kContainerExited, "container-exited", Severity::kInfo},
    {Kind::kContainerRemoved, "container-removed", Severity::kInfo},
    {Kind::kContainerIsolated, "container-isolated", Severity::kInfo},
    {Kind::kContainerNotIsolated, "container-not-isolated", Severity::kWarning},
    {Kind::kKubeletChanged, "kubelet-changed", Severity::kInfo},
    {Kind::kCpusContested, "cpus-contested", Severity::kWarning},
    {Kind::kCpusUncontested, "cpus-uncontested", Severity::kInfo},
    {Kind::kClaimsChanged, "claims-changed", Severity::kInfo},
    {Kind::kClaimRefused, "claim-refused", Severity::kWarning},
    {Kind::kOverrideChanged, "override-changed", Severity::kInfo},
    {Kind::kVmmRefused, "vmm-refused", Severity::kInfo},
    {Kind::kSeen, "seen", Severity::kInfo},
    {Kind::kUnseen, "unseen", Severity::kWarning},
    {Kind::kDrift, "drift", Severity::kWarning},
    {Kind::kLate, "late", Severity::kWarning},
    {Kind::kUnmanaged, "unmanaged", Severity::kWarning},
    {Kind::kUnplaced, "unplaced", Severity::kWarning},
    {Kind::kPlaced, "placed", Severity::kInfo},
    {Kind::kTakenBack, "taken-back", Severity::kInfo},
    {Kind::kReleased, "released", Severity::kInfo},
    {Kind::kCgroupWritten, "cgroup-written", Severity::kInfo},
    {Kind::kCgroupOverwritten, "cgroup-overwritten", Severity::kInfo},
    {Kind::kShimNarrowed, "shim-narrowed", Severity::kInfo},
    {Kind::kMemoryMoved, "memory-moved", Severity::kInfo},
    {Kind::kSourceUp, "source-up", Severity::kInfo},
    {Kind::kSourceDown, "source-down", Severity::kWarning},
    {Kind::kSourceLate, "source-late", Severity::kWarning},
    {Kind::kSourceInTime, "source-in-time", Severity::kInfo},
    {Kind::kGuestUp, "guest-up", Severity::kInfo},
    {Kind::kGuestDown, "guest-down", Severity::kWarning},
    {Kind::kStartWaiting, "start-waiting", Severity::kWarning},
    {Kind::kStartLate, "start-late", Severity::kWarning},
    {Kind::kStartComplete, "start-complete", Severity::kInfo},
    {Kind::kStateSaved, "state-saved", Severity::kInfo},
    {Kind::kStateUnsaved, "state-unsaved", Severity::kWarning},
    {Kind::kConfigured, "configured", Severity::kInfo},
    {Kind::kTopologyChanged, "topology-changed", Severity::kInfo},
    {Kind::kClassChanged, "class-changed", Severity::kInfo},
    {Kind::kClassRefused, "class-refused", Severity::kWarning},
    {Kind::kContainerAdopted, "container-adopted", Severity::kWarning},
    {Kind::kContainerUnlisted, "container-unlisted", Severity::kWarning},
    {Kind::kCpusetWritten, "cpuset-written", Severity::kWarning},
    {Kind::kForeignCpuset, "foreign-cpuset", Severity::kWarning},
    {Kind::kForeignProcess, "foreign-process", Severity::kWarning},
    {Kind::kOwnersChanged, "owners-changed", Severity::kInfo},
    {Kind::kQuiet, "quiet", Severity::kInfo},
    {Kind::kNotQuiet, "not-quiet", Severity::kWarning},
    {Kind::kGradeRefused, "grade-refused", Severity::kWarning},
    {Kind::kGuestWritten, "guest-told", Severity::kInternal},
    {Kind::kGuestChanged, "guest-changed", Severity::kInternal},
    {Kind::kSandboxPlanned, "sandbox-planned", Severity::kInternal},
    {Kind::kLineRun, "line-run", Severity::kInternal},
};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < std::size(kKinds); ++i) {
    if (kKinds[i].kind != static_cast<Kind>(i)) return false;
  }
  return std::size(kKinds) == static_cast<std::size_t>(Kind::kLineRun) + 1;
}
static_assert(is_in_order());

const Row& row_of(Kind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

}  // namespace

std::string_view kind_name(Kind kind) { return row_of(kind).name; }

Severity severity_of(Kind kind) { return row_of(kind).severity; }

Kind kind_of(const policy::ledger::Event& event) {
  struct Visitor {
    policy::ledger::Source source;

    Kind operator()(const policy::ledger::PodSeen&) const { return Kind::kSandboxUpdated; }
    Kind operator()(const policy::ledger::PodGone&) const { return Kind::kSandboxRemoved; }
    Kind operator()(const policy::ledger::ContainerSeen&) const { return Kind::kContainerUpdated; }
    Kind operator()(const policy::ledger::ContainerExited&) const { return Kind::kContainerExited; }
    Kind operator()(const policy::ledger::ContainerGone&) const { return Kind::kContainerRemoved; }
    Kind operator()(const policy::ledger::KubeletSeen&) const {
      return source == policy::ledger::Source::kManaged ? Kind::kOwnersChanged
                                                        : Kind::kKubeletChanged;
    }
    Kind operator()(const policy::ledger::ResourcesSeen&) const { return Kind::kKubeletChanged; }
    Kind operator()(const policy::ledger::PreparedSeen&) const { return Kind::kClaimsChanged; }
    Kind operator()(const policy::ledger::OverrideSet&) const { return Kind::kOverrideChanged; }
  };
  return std::visit(Visitor{event.source}, event.body);
}

std::string container_of(const policy::ledger::EventBody& body) {
  if (const auto* seen = std::get_if<policy::ledger::ContainerSeen>(&body)) return seen->id;
  if (const auto* exited = std::get_if<policy::ledger::ContainerExited>(&body))
    return exited->container;
  const auto* gone = std::get_if<policy::ledger::ContainerGone>(&body);
  return gone == nullptr ? std::string() : gone->container;
}

}  // namespace ka::board
