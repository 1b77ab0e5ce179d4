// SPDX-License-Identifier: Apache-2.0
// What a look at processes could not see. "It is not there" and "it cannot be seen" are different
// answers: the second one must not make anything be forgotten.
#pragma once

#include <optional>

#include "base/result.hpp"

namespace ka::base {

class Trouble {
 public:
  /// An error that says that something has ended is none.
  void record(const Error& error) {
    if (error.code == ErrorCode::kGone) return;
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

  bool none() const { return !passing_ && !refused_; }
  /// The first error that may pass: want of descriptors or of memory, a signal, a device's error.
  const std::optional<Error>& passing() const { return passing_; }
  /// The first refusal: a privilege that we lack, which is how a node may be set up.
  const std::optional<Error>& refused() const { return refused_; }

 private:
  static void keep(std::optional<Error>& first, const Error& error) {
    if (!first) first = error;
  }

  std::optional<Error> passing_, refused_;
};

}  // namespace ka::base
