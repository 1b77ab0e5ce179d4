// SPDX-License-Identifier: Apache-2.0
// kill -9 in the middle of what a program writes: a cut before or after any one of its writes.
#pragma once

namespace ka::tests {

/// Thrown out of a write; nothing of the program runs on.
struct Killed {};

class Scissors {
 public:
  /// At which place from now on: 0 is before the next write, 1 after it, 2 before the one that
  /// follows. What was recorded between 1 and 2 makes them differ.
  void set(int place) { left_ = place; }
  void put_away() { left_ = kAway; }

  /// Before and after each write.
  void snip() {
    if (left_ == kAway || left_-- > 0) return;
    put_away();
    throw Killed{};
  }

  template <typename Write>
  auto around(const Write& write) {
    snip();
    auto done = write();
    snip();
    return done;
  }

 private:
  static constexpr int kAway = -1;

  int left_ = kAway;
};

}  // namespace ka::tests
