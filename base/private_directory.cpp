// SPDX-License-Identifier: Apache-2.0
#include "base/private_directory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
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

}  // namespace

Result<bool> make_private_directory(const std::filesystem::path& path) {
  if (auto made = make(path); !made) return unexpected(std::move(made.error()));
  const auto directory = open_directory(path);
  if (!directory) return unexpected(directory.error());
  struct stat status{};
  if (::fstat(directory->get(), &status) != 0) return fail_errno(errno, path.string());
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    return fail(ErrorCode::kPermission, path.string() + " belongs to user " +
                                            std::to_string(status.st_uid) +
                                            ", who could change its contents");
  }
  if ((status.st_mode & kOthersWrite) == 0) return false;
  if (::fchmod(directory->get(), status.st_mode & kModeBits & ~kOthersWrite) != 0) {
    return fail_errno(
        errno, "other users can write " + path.string() + ", and its mode cannot be changed");
  }
  return true;
}

}  // namespace ka::base
