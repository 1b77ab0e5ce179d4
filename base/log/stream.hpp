// SPDX-License-Identifier: Apache-2.0
// A descriptor that log lines go to, standard error. Whoever reads it may have stopped (journald, a
// container runtime, a terminal after ^S), and must not stop the program with it.
#pragma once

#include <string_view>

#include "base/fd.hpp"

namespace ka::log {

class Stream {
 public:
  /// `fd` must outlive it. Other programs may have it too: its flags stay as they are.
  explicit Stream(int fd);

  /// Writes a line, its end included, as far as that is possible without waiting. False: it was
  /// not written, or only its beginning, and the next line starts on a line of its own. A short
  /// line is one write(2), so that lines of several threads do not mix. Where a pipe has no reader,
  /// SIGPIPE must be ignored.
  bool put(std::string_view line);

 private:
  enum class Kind { kSocket, kPipeOrTerminal, kOther };

  static Kind kind_of(int fd);
  /// What send(2) and write(2) return.
  long write_now(std::string_view text) const;

  int fd_;
  Kind kind_;
  base::Fd own_;
  bool is_cut_ = false;  ///< the last line has no end
};

}  // namespace ka::log
