// SPDX-License-Identifier: Apache-2.0
#include "base/private_directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "base/files.hpp"

namespace ka::base {
namespace {

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;
constexpr mode_t kModeBits = 07777;

Result<void> make(const std::filesystem::path& path) {
  std::error_code failed;
  std::filesystem::create_directories(path.parent_path(), failed);
  if (failed) return fail_errno(failed.value(), "cannot create " + path.parent_path().string());
  if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return fail_errno(errno, "cannot create " + path.string());
  }
  return {};
}

bool is_trusted(const struct stat& status) {
  return status.st_uid == ::geteuid() || status.st_uid == 0;
}

std::string foreign_text(const std::filesystem::path& path, const struct stat& status) {
  return path.string() + " belongs to user " + std::to_string(status.st_uid);
}

Result<struct stat> examine(const std::filesystem::path& path, int flags) {
  struct stat status{};
  if (::fstatat(AT_FDCWD, path.c_str(), &status, flags) != 0) {
    return fail_errno(errno, path.string());
  }
  if (!is_trusted(status)) return fail(ErrorCode::kInvalid, foreign_text(path, status));
  return status;
}

}  // namespace

Result<bool> make_private_directory(const std::filesystem::path& path) {
  if (auto made = make(path); !made) return unexpected(std::move(made.error()));
  const auto directory = open_directory(path);
  if (!directory) return unexpected(directory.error());
  struct stat status{};
  if (::fstat(directory->get(), &status) != 0) return fail_errno(errno, path.string());
  if (!is_trusted(status)) {
    return fail(ErrorCode::kPermission,
                foreign_text(path, status) + ", who could change its contents");
  }
  if ((status.st_mode & kOthersWrite) == 0) return false;
  if (::fchmod(directory->get(), status.st_mode & kModeBits & ~kOthersWrite) != 0) {
    return fail_errno(
        errno, "other users can write " + path.string() + ", and its mode cannot be changed");
  }
  return true;
}

Result<bool> make_private_file(const std::filesystem::path& path) {
  const auto status = examine(path, AT_SYMLINK_NOFOLLOW);
  if (!status) return unexpected(status.error());
  if (S_ISLNK(status->st_mode)) {
    return examine(path, 0).transform([](const struct stat&) { return false; });
  }
  if (!S_ISREG(status->st_mode) || (status->st_mode & kOthersWrite) == 0) return false;
  if (::chmod(path.c_str(), status->st_mode & kModeBits & ~kOthersWrite) != 0) {
    return fail_errno(
        errno, "other users can write " + path.string() + ", and its mode cannot be changed");
  }
  return true;
}

}  // namespace ka::base
