// SPDX-License-Identifier: Apache-2.0
// What the agent opens at its start: nobody starts it again for want of a descriptor or of memory,
// so what cannot be opened is tried again.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace ka::agent {

class Openings {
 public:
  /// kUnavailable, kPermission: it never will be.
  using Open = std::function<base::Result<void>()>;

  /// Tries at once. A failure is printed.
  void add(Open open);
  /// What had been opened and has failed since is printed, and opened by the next retry().
  void add_failed(Open open, const base::Error& failed);
  /// Tries again what has failed. The same failure is printed once.
  void retry();
  /// Nothing is left to be tried.
  bool are_done() const { return left_.empty(); }

 private:
  struct Left {
    Open open;
    std::string printed;  ///< the last failure
  };

  static bool is_over(Left& left);
  static void print(Left& left, const base::Error& failed);

  std::vector<Left> left_;
};

}  // namespace ka::agent
