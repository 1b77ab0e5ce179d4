// SPDX-License-Identifier: Apache-2.0
// What a scan of processes could not read. "It is not there" and "it cannot be read" are different
// results: only the first may remove anything from our state.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"

namespace ka::base {

class Trouble {
 public:
  /// Errors that mean "it has ended" are ignored.
  void record(const Error& error) {
    if (is_gone(error)) return;
    if (error.code == ErrorCode::kPermission) {
      keep(refused_, error);
    } else {
      keep(passing_, error);
    }
  }
  template <typename T>
  void record(const Result<T>& result) {
    if (!result) record(result.error());
  }
  /// Of what must be read, whatever the error.
  void record_unread(const Error& error) { keep(passing_, error); }
  /// Of what is more than is ever read: as with a permission, reading it again will not help.
  void record_left_out(const std::string& what) {
    keep(refused_, {ErrorCode::kInvalid, what + "; the rest is not read"});
  }

  bool none() const { return !passing_ && !refused_; }
  /// The first transient error: out of descriptors or memory, a signal, a device's error.
  const std::optional<Error>& passing() const { return passing_; }
  /// The first permission error: nodes may be set up so that we lack a privilege.
  const std::optional<Error>& refused() const { return refused_; }
  /// One of the errors, a transient one first.
  const std::optional<Error>& any() const { return passing_ ? passing_ : refused_; }

 private:
  static void keep(std::optional<Error>& first, const Error& error) {
    if (!first) first = error;
  }

  std::optional<Error> passing_, refused_;
};

}  // namespace ka::base
