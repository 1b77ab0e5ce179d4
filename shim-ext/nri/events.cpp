// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/nri/events.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace ka::nri {
namespace {

constexpr std::array<std::pair<Event, std::string_view>, 13> kMethods{{
    {Event::kRunPodSandbox, "RunPodSandbox"},
    {Event::kStopPodSandbox, "StopPodSandbox"},
    {Event::kRemovePodSandbox, "RemovePodSandbox"},
    {Event::kCreateContainer, "CreateContainer"},
    {Event::kPostCreateContainer, "PostCreateContainer"},
    {Event::kStartContainer, "StartContainer"},
    {Event::kPostStartContainer, "PostStartContainer"},
    {Event::kUpdateContainer, "UpdateContainer"},
    {Event::kPostUpdateContainer, "PostUpdateContainer"},
    {Event::kStopContainer, "StopContainer"},
    {Event::kRemoveContainer, "RemoveContainer"},
    {Event::kUpdatePodSandbox, "UpdatePodSandbox"},
    {Event::kPostUpdatePodSandbox, "PostUpdatePodSandbox"},
}};

struct Version {
  int major = 0;
  int minor = 0;

  auto operator<=>(const Version&) const = default;
};

/// "v2.1.5", "1.7.24~ds1": the first two numbers; {0, 0} for anything else.
Version parse_version(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  Version version;
  const char* end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, version.major);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return {};
  const auto minor = std::from_chars(major.ptr + 1, end, version.minor);
  return minor.ec == std::errc() ? version : Version{};
}

bool knows_resize(std::string_view nri_version, std::string_view runtime,
                  std::string_view runtime_version) {
  if (!nri_version.empty()) return parse_version(nri_version) >= Version{0, 10};
  const Version version = parse_version(runtime_version);
  if (runtime == "containerd") return version >= Version{2, 2};
  return runtime == "cri-o" && version >= Version{1, 34};
}

}  // namespace

std::string_view method_of(Event event) {
  const auto* found =
      std::ranges::find(kMethods, event, &std::pair<Event, std::string_view>::first);
  return found == kMethods.end() ? std::string_view() : found->second;
}

std::optional<Event> event_of(std::string_view method) {
  const auto* found =
      std::ranges::find(kMethods, method, &std::pair<Event, std::string_view>::second);
  if (found == kMethods.end()) return std::nullopt;
  return found->first;
}

std::int32_t event_mask(std::string_view nri_version, std::string_view runtime,
                        std::string_view runtime_version) {
  constexpr std::int32_t kResized =
      1 << (static_cast<std::int32_t>(Event::kPostUpdatePodSandbox) - 1);
  return knows_resize(nri_version, runtime, runtime_version) ? kBasicMask | kResized : kBasicMask;
}

}  // namespace ka::nri
