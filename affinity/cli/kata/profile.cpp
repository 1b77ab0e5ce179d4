// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/kata/profile.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "affinity/cli/kata/kata_config.hpp"

namespace ka::cli {
namespace {

constexpr auto kNames = std::to_array<std::pair<Profile, std::string_view>>(
    {{Profile::kWatch, "watch"}, {Profile::kIsolated, "isolated"}, {Profile::kDefault, "default"}});

}  // namespace

std::string_view profile_name(Profile profile) {
  return std::ranges::find(kNames, profile, &std::pair<Profile, std::string_view>::first)->second;
}

std::optional<Profile> parse_profile(std::string_view name) {
  const auto* found =
      std::ranges::find(kNames, name, &std::pair<Profile, std::string_view>::second);
  return found == kNames.end() ? std::nullopt : std::optional(found->first);
}

Profile profile_of(const config::Entries& entries) {
  if (text_at(entries, {"affinity", "mode"}) == "observe") return Profile::kWatch;
  const std::string housekeeping = text_at(entries, {"affinity", "housekeeping"});
  const bool leaves = text_at(entries, {"affinity", "cgroup"}) == "manage" &&
                      housekeeping != "sandbox";  // to the shared pool, or a cpuset
  return leaves || housekeeping == "isolate" ? Profile::kIsolated : Profile::kDefault;
}

std::optional<Profile> profile_of_node(const std::filesystem::path& root) {
  const auto entries = read_affinity(root);
  return entries ? std::optional(profile_of(*entries)) : std::nullopt;
}

}  // namespace ka::cli
