#include "shim-ext/watch/stamp.hpp"

#include <sys/stat.h>

namespace ka::watch {

Stamp stamp_of(const std::filesystem::path& file) {
  struct stat found{};
  if (::stat(file.c_str(), &found) != 0) return {};
  return {found.st_dev, found.st_ino, found.st_mtim.tv_sec, found.st_mtim.tv_nsec, found.st_size};
}

}  // namespace ka::watch
