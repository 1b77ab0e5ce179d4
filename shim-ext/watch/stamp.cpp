// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/watch/stamp.hpp"

#include <sys/stat.h>

#include <cerrno>

namespace ka::watch {

std::optional<Stamp> stamp_of(const std::filesystem::path& file) {
  struct stat found{};
  if (::stat(file.c_str(), &found) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return Stamp{};
    return std::nullopt;
  }
  return Stamp{found.st_dev, found.st_ino, found.st_mtim.tv_sec, found.st_mtim.tv_nsec,
               found.st_size};
}

}  // namespace ka::watch
