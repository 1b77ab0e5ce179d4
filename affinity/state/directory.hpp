// SPDX-License-Identifier: Apache-2.0
// The directory of the state files. Others may empty it or put another in its place at run time.
#pragma once

#include <sys/stat.h>

#include <filesystem>

#include "base/fd.hpp"
#include "base/log/log.hpp"
#include "base/result.hpp"

namespace ka::state {

/// Makes a directory of ours and closes it to other users, with a message: the daemon trusts its
/// content at the start. Errors: as base::make_private_directory().
base::Result<void> make_private(const std::filesystem::path& directory, const log::Log& log);

class Directory {
 public:
  /// Makes the directory when it is missing, and locks it: two daemons that wrote the same files
  /// would each undo what the other knew. kConflict when another daemon has it. The lock lasts as
  /// long as the descriptor.
  static base::Result<base::Fd> claim(const std::filesystem::path& path);

  /// A directory that was claimed, with its lock. `log` must outlive it.
  Directory(std::filesystem::path path, base::Fd lock, const log::Log& log);

  const std::filesystem::path& path() const { return path_; }

  /// Success where the path still names the directory that was claimed, with the same owner and
  /// mode: false. What else it names is made private and locked as at a start: true, and nothing
  /// that was written is known to be there. Any error: it may not be used.
  base::Result<bool> ensure();
  /// After ensure(): something has been written there since the last call. Locks it again where
  /// the lock has been removed. Any error: it may not be used.
  base::Result<bool> has_changed();

 private:
  base::Result<struct stat> examine() const;
  bool is_locked() const;
  base::Result<void> lock();

  std::filesystem::path path_;
  base::Fd lock_;
  const log::Log& log_;
  struct stat claimed_{};
  struct timespec changed_{};
};

}  // namespace ka::state
