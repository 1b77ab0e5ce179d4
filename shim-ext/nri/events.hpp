// SPDX-License-Identifier: Apache-2.0
// NRI's events: their numbers, their methods, and which of them a runtime knows.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ka::nri {

/// By api.proto's numbers.
enum class Event : std::int32_t {
  kRunPodSandbox = 1,
  kStopPodSandbox = 2,
  kRemovePodSandbox = 3,
  kCreateContainer = 4,
  kPostCreateContainer = 5,
  kStartContainer = 6,
  kPostStartContainer = 7,
  kUpdateContainer = 8,
  kPostUpdateContainer = 9,
  kStopContainer = 10,
  kRemoveContainer = 11,
  kUpdatePodSandbox = 12,
  kPostUpdatePodSandbox = 13,
};

/// What an event reports of its container, or of the whole pod.
enum class Reported { kNothing, kSpec, kUpdate, kExited, kRemoved, kPodRemoved };

/// How the runtime waits for what follows from an event.
enum class Moment {
  kIgnored,         ///< nothing follows
  kBeforeAndAfter,  ///< it has done the most of this, and waits
  kCreating,        ///< about to create a container, which can be adjusted
  kStarting,        ///< about to start a container, whose guest is waited for
  kUpdating,        ///< about to change a container's limits
  kStopped,         ///< a container has exited; the answer may change others
  kAfter,           ///< it has done this, and does not wait
};

struct EventRule {
  Event event;
  std::string_view method;
  bool pod = false;  ///< it reports its pod as it is now
  Reported container = Reported::kNothing;
  Moment moment = Moment::kIgnored;
};

/// Null for a number that is no event of ours.
const EventRule* rule_of(Event event);

/// The event that a method of the Plugin service reports by its name.
std::optional<Event> event_of(std::string_view method);

/// What every version of NRI knows; more than a runtime knows makes it refuse the plugin.
inline constexpr std::int32_t kBasicMask = 0x7ff;

/// The events to subscribe to: all basic ones, and since NRI 0.10 the resize of a pod.
/// `nri_version` is reported since 0.12 ("v0.12.0"); before, the runtime's name and version decide
/// (pkg/api/version.go). Unknown runtimes get the events that all versions know.
std::int32_t event_mask(std::string_view nri_version, std::string_view runtime,
                        std::string_view runtime_version);

/// A runtime with this NRI can be asked to change containers between its calls. Before 0.12.1 such
/// a request can deadlock with a call of the runtime's own (containerd#13733, nri#301). Versions
/// before 0.12 do not say theirs.
bool accepts_updates(std::string_view nri_version);

}  // namespace ka::nri
