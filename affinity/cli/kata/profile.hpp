// SPDX-License-Identifier: Apache-2.0
// Profiles: what kata-affinity does for exclusive containers of a node, in one word.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "affinity/config/entries.hpp"

namespace ka::cli {

enum class Profile {
  kWatch,     ///< plans and reports, writes nothing
  kIsolated,  ///< nothing but its own vCPU runs on an exclusive CPU
  kDefault,   ///< the compiled-in defaults: vCPUs are pinned, other threads stay beside them
};

/// "watch", "isolated", "default".
std::string_view profile_name(Profile profile);
std::optional<Profile> parse_profile(std::string_view name);

/// What the [affinity] table among a file's entries amounts to.
Profile profile_of(const config::Entries& entries);

/// The profile of the table that the daemon reads below `root`; absent: there is none, and the
/// compiled-in defaults hold.
std::optional<Profile> profile_of_node(const std::filesystem::path& root);

/// What isolates a node in one command.
inline constexpr const char* kIsolateCommand = "kata-affinityctl setup --profile isolated --yes";

}  // namespace ka::cli
