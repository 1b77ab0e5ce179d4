// SPDX-License-Identifier: Apache-2.0
#include "base/inotify.hpp"

#include <sys/inotify.h>

#include <cerrno>

namespace ka::base {
namespace {

/// A user has as many instances at most, and a process as many descriptors: both are EMFILE.
const char* limit_of(int number) {
  switch (number) {
    case EMFILE:
      return "; see fs.inotify.max_user_instances and LimitNOFILE= of the unit";
    case ENFILE:
      return "; see fs.file-max";
    case ENOSPC:
      return "; see fs.inotify.max_user_watches";
    default:
      return "";
  }
}

Error error_of(int number, const std::string& what) {
  Error error = system_error(number, what);
  error.message += limit_of(number);
  return error;
}

}  // namespace

Result<Fd> open_inotify() {
  Fd inotify(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!inotify) return unexpected(error_of(errno, "inotify"));
  return inotify;
}

Result<int> watch_directory(int inotify, const std::string& directory, std::uint32_t events) {
  const int watch = ::inotify_add_watch(inotify, directory.c_str(), events | IN_ONLYDIR);
  if (watch < 0 && errno == ENOTDIR)
    return fail(ErrorCode::kGone, directory + " is not a directory");
  if (watch < 0) return unexpected(error_of(errno, "cannot watch " + directory));
  return watch;
}

std::string inotify_remedy(const Error& error) {
  switch (error.number) {
    case EMFILE:
      return "sysctl -w fs.inotify.max_user_instances=1024";
    case ENOSPC:
      return "sysctl -w fs.inotify.max_user_watches=1048576";
    default:
      return {};
  }
}

}  // namespace ka::base
