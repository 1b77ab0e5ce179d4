// SPDX-License-Identifier: Apache-2.0
#include "affinity/state/directory.hpp"

#include <string>
#include <system_error>
#include <utility>

#include "base/files.hpp"
#include "base/private_directory.hpp"

namespace ka::state {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLock = "lock";

bool is_same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool is_same(const struct stat& one, const struct stat& other) {
  return is_same_file(one, other) && one.st_uid == other.st_uid && one.st_mode == other.st_mode;
}

}  // namespace

base::Result<void> make_private(const fs::path& directory, const log::Log& log) {
  const auto mended = base::make_private_directory(directory);
  if (!mended) return unexpected(mended.error());
  if (*mended) {
    log.warning("directory was writable by other users; permissions corrected",
                {{"directory", directory.string()}});
  }
  return {};
}

base::Result<base::Fd> Directory::claim(const fs::path& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  if (failed) return base::fail_errno(failed.value(), "cannot create " + path.string());
  auto lock = base::lock_file(path / kLock);
  if (!lock && lock.error().code == base::ErrorCode::kConflict) {
    return base::fail(base::ErrorCode::kConflict, "another daemon uses " + path.string());
  }
  return lock;
}

Directory::Directory(fs::path path, base::Fd lock, const log::Log& log)
    : path_(std::move(path)), lock_(std::move(lock)), log_(log) {
  if (const auto now = examine()) claimed_ = *now;
}

base::Result<struct stat> Directory::examine() const {
  struct stat status{};
  if (::stat(path_.c_str(), &status) != 0) return base::fail_errno(errno, path_.string());
  return status;
}

base::Result<bool> Directory::ensure() {
  const auto found = examine();
  if (!found && !is_gone(found)) return unexpected(found.error());
  if (found && is_same(*found, claimed_)) return false;
  if (auto made = make_private(path_, log_); !made) return unexpected(made.error());
  if (auto locked = lock(); !locked) return unexpected(locked.error());
  const auto now = examine();
  if (!now) return unexpected(now.error());
  claimed_ = *now;
  log_.warning("state directory was replaced or changed; its files are written again",
               {{"directory", path_.string()}});
  return true;
}

/// The time of the change, since that of the last write can be set to any.
base::Result<bool> Directory::has_changed() {
  const auto now = examine();
  if (!now) return unexpected(now.error());
  const auto& time = now->st_ctim;
  if (time.tv_sec == changed_.tv_sec && time.tv_nsec == changed_.tv_nsec) return false;
  if (auto locked = lock(); !locked) return unexpected(locked.error());
  changed_ = time;
  return true;
}

bool Directory::is_locked() const {
  struct stat held{};
  struct stat there{};
  return lock_ && ::fstat(lock_.get(), &held) == 0 &&
         ::stat((path_ / kLock).c_str(), &there) == 0 && is_same_file(held, there);
}

base::Result<void> Directory::lock() {
  if (is_locked()) return {};
  auto lock = claim(path_);
  if (!lock) return unexpected(lock.error());
  lock_ = std::move(*lock);
  return {};
}

}  // namespace ka::state
