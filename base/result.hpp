// SPDX-License-Identifier: Apache-2.0
// How code with side effects reports failure: a value with the kind of failure
// (so that callers can decide), with a message for the operator. Messages contain paths and other
// text of tenants: they become printable (base/text.hpp) here, where errors are made.
#pragma once

#include <string>
#include <string_view>

#include "policy/facts/expected.hpp"

namespace ka::base {

enum class ErrorCode {
  kInvalid,      ///< the input is wrong; nothing was changed
  kNotFound,     ///< no such sandbox, container, CPU
  kConflict,     ///< the input contradicts what is known
  kGone,         ///< it went away (ESRCH, ENOENT): normal
  kTransient,    ///< may work later (EINVAL of a race, EBUSY, EAGAIN, ENOSPC, EINTR, EMFILE)
  kPermission,   ///< never will (EPERM, EACCES, EROFS)
  kUnavailable,  ///< a peer or a facility of the kernel is not there
  kInternal,     ///< a defect, or an unexpected errno
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  int number = 0;  ///< errno where a system call failed, else 0

  bool operator==(const Error&) const = default;
};

template <typename T>
using Result = Expected<T, Error>;

/// An Error with this message, made printable.
Error make_error(ErrorCode code, std::string_view message, int number = 0);

/// `return fail(ErrorCode::kInvalid, "...")`.
inline auto fail(ErrorCode code, std::string_view message) {
  return unexpected(make_error(code, message));
}

/// The same error, and where it happened: "<where>: <message>".
Error error_in(const std::string& where, const Error& error);

/// It went away, which is normal.
inline bool is_gone(const Error& error) { return error.code == ErrorCode::kGone; }
template <typename T>
bool is_gone(const Result<T>& result) {
  return !result && is_gone(result.error());
}

/// The class of an errno, by the table of docs/develop/architecture.md (failure rules).
ErrorCode classify_errno(int number);

/// An Error from errno: "<what>: <strerror>".
Error system_error(int number, const std::string& what);
inline auto fail_errno(int number, const std::string& what) {
  return unexpected(system_error(number, what));
}

}  // namespace ka::base
