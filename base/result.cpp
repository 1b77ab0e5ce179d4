// SPDX-License-Identifier: Apache-2.0
#include "base/result.hpp"

#include <cerrno>
#include <system_error>

#include "base/text.hpp"

namespace ka::base {

ErrorCode classify_errno(int number) {
  switch (number) {
    case ESRCH:
    case ENOENT:
    case ENODEV:
      return ErrorCode::kGone;
    case EINVAL:
    case EBUSY:
    case EAGAIN:
    case EINTR:
    case ENOSPC:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return ErrorCode::kTransient;
    case EPERM:
    case EACCES:
    case EROFS:
      return ErrorCode::kPermission;
    case ECONNREFUSED:
    case ENOSYS:
    case EOPNOTSUPP:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kInternal;
  }
}

Error make_error(ErrorCode code, std::string_view message, int number) {
  return {code, printable(message, kMaxPath + kMaxSentence), number};
}

Error error_in(const std::string& where, const Error& error) {
  return make_error(error.code, where + ": " + error.message, error.number);
}

Error system_error(int number, const std::string& what) {
  return make_error(classify_errno(number), what + ": " + std::generic_category().message(number),
                    number);
}

}  // namespace ka::base
