// SPDX-License-Identifier: Apache-2.0
// What `setup` puts beside Kata's and containerd's files. Theirs are read, never written.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "affinity/cli/command_line/options.hpp"
#include "affinity/cli/kata/kata_config.hpp"
#include "affinity/cli/setup/profile_settings.hpp"
#include "affinity/cli/terminal/output.hpp"
#include "base/result.hpp"

namespace ka::cli {

/// A file of ours that is to be made, replaced or removed.
struct Change {
  enum class Kind { kCreate, kReplace, kRemove, kKeep };

  Kind kind = Kind::kKeep;
  std::filesystem::path file;
  std::string text;  ///< its new content; empty for kRemove
};

struct SetupPlan {
  std::vector<Installation> installations = {};  ///< that get a drop-in
  std::optional<Profile> profile = {};           ///< that is written; absent: setup is undone
  std::vector<std::pair<Profile, ProfileText>> profiles = {};  ///< the choice
  std::vector<Change> changes = {};
  std::vector<std::string> notes = {};  ///< remaining manual steps
};

/// "create", "replace", "remove", "keep".
std::string change_name(Change::Kind kind);

/// What has to change; nothing is written. kInvalid: a file cannot be understood; kConflict: a file
/// in the way was not written by setup; kNotFound: Kata, or what isolates, is not there.
base::Result<SetupPlan> plan_setup(const SetupOptions& options);

/// The way back: every file that setup wrote is to go.
base::Result<SetupPlan> plan_undo(const SetupOptions& options);

/// Writes and removes files, in order; stops at the first that fails.
base::Result<void> carry_out(const SetupPlan& plan);

Exit run(const SetupOptions& options, Output& output);

}  // namespace ka::cli
