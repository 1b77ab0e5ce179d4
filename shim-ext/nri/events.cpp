// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/nri/events.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace ka::nri {
namespace {

using enum Reported;
using enum Moment;

constexpr std::array<EventRule, 13> kRules{{
    {Event::kRunPodSandbox, "RunPodSandbox", true, kNothing, kBeforeAndAfter},
    {Event::kStopPodSandbox, "StopPodSandbox", false, kNothing, kIgnored},
    {Event::kRemovePodSandbox, "RemovePodSandbox", false, kPodRemoved, kAfter},
    {Event::kCreateContainer, "CreateContainer", true, kSpec, kCreating},
    {Event::kPostCreateContainer, "PostCreateContainer", true, kSpec, kAfter},
    {Event::kStartContainer, "StartContainer", true, kSpec, kStarting},
    {Event::kPostStartContainer, "PostStartContainer", true, kSpec, kAfter},
    {Event::kUpdateContainer, "UpdateContainer", true, kUpdate, kUpdating},
    {Event::kPostUpdateContainer, "PostUpdateContainer", true, kSpec, kAfter},
    {Event::kStopContainer, "StopContainer", false, kExited, kStopped},
    {Event::kRemoveContainer, "RemoveContainer", false, kRemoved, kAfter},
    {Event::kUpdatePodSandbox, "UpdatePodSandbox", false, kNothing, kIgnored},
    {Event::kPostUpdatePodSandbox, "PostUpdatePodSandbox", true, kNothing, kAfter},
}};

struct Version {
  int major = 0;
  int minor = 0;
  int patch = 0;

  auto operator<=>(const Version&) const = default;
};

/// "v2.1.5", "1.7.24~ds1", "v2.2": the first numbers; zeros for anything else.
Version parse_version(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  Version version;
  const char* end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, version.major);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return {};
  const auto minor = std::from_chars(major.ptr + 1, end, version.minor);
  if (minor.ec != std::errc()) return {};
  if (minor.ptr != end && *minor.ptr == '.') std::from_chars(minor.ptr + 1, end, version.patch);
  return version;
}

bool knows_resize(std::string_view nri_version, std::string_view runtime,
                  std::string_view runtime_version) {
  if (!nri_version.empty()) return parse_version(nri_version) >= Version{0, 10};
  const Version version = parse_version(runtime_version);
  if (runtime == "containerd") return version >= Version{2, 2};
  return runtime == "cri-o" && version >= Version{1, 34};
}

}  // namespace

const EventRule* rule_of(Event event) {
  const auto* found = std::ranges::find(kRules, event, &EventRule::event);
  return found == kRules.end() ? nullptr : found;
}

std::optional<Event> event_of(std::string_view method) {
  const auto* found = std::ranges::find(kRules, method, &EventRule::method);
  if (found == kRules.end()) return std::nullopt;
  return found->event;
}

std::int32_t event_mask(std::string_view nri_version, std::string_view runtime,
                        std::string_view runtime_version) {
  constexpr std::int32_t kResized =
      1 << (static_cast<std::int32_t>(Event::kPostUpdatePodSandbox) - 1);
  return knows_resize(nri_version, runtime, runtime_version) ? kBasicMask | kResized : kBasicMask;
}

bool accepts_updates(std::string_view nri_version) {
  return parse_version(nri_version) >= Version{0, 12, 1};
}

}  // namespace ka::nri
