// SPDX-License-Identifier: Apache-2.0
// What is put into a guest: the agent, and what starts it there.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ka::image {

/// Where the agent is in a guest's image.
inline constexpr const char* kAgentPath = "/usr/bin/kata-affinity-agent";
/// Kata's `guest_hook_path`: below it are the directories "prestart" and "poststop".
inline constexpr const char* kHookPath = "/usr/libexec/kata-affinity/hooks";
inline constexpr std::size_t kMostAgent = std::size_t{64} << 20;

inline constexpr unsigned kImageMode = 0644;  ///< the permissions of an image

/// One entry of an image.
struct Item {
  enum class Kind { kDirectory, kFile, kLink, kHardLink };
  Kind kind = Kind::kFile;
  std::string path;      ///< without the leading "/"
  unsigned mode = 0644;  ///< its permissions
  std::string data;      ///< kFile: its text; kLink, kHardLink: what it points to
};

/// Everything for an image that has a root of its own: the agent, its unit for systemd, and the
/// hooks; the directories first. The agent is one file with three names.
std::vector<Item> files_of_root(std::string agent);

/// Everything for an extension image, which Kata mounts at /run/kata-extensions/<its name>.
std::vector<Item> files_of_extension(std::string agent);

/// The version of the agent that these bytes are; empty: they are no agent of ours.
std::string agent_version(std::string_view program);

/// The agent to put into images. kInvalid: it is none of ours, or needs libraries that a guest
/// may not have.
base::Result<std::string> read_agent(const std::filesystem::path& file);

}  // namespace ka::image
