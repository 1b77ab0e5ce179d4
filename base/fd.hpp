// SPDX-License-Identifier: Apache-2.0
// An owned file descriptor.
#pragma once

#include <utility>

namespace ka::base {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int number) : number_(number) {}
  Fd(Fd&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.number_, -1));
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  /// Gives the descriptor away.
  int release() { return std::exchange(number_, -1); }
  /// Closes what it holds and takes `number`.
  void reset(int number = -1);

 private:
  int number_ = -1;
};

}  // namespace ka::base
