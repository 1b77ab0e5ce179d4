// SPDX-License-Identifier: Apache-2.0
// Where the lines of a log go: to journald where standard error is journald's, else to standard
// error. What neither accepts now is lost, and counted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/log/journal.hpp"
#include "base/log/log.hpp"
#include "base/log/stream.hpp"

namespace ka::log {

class Output {
 public:
  /// `fd` is standard error, and must outlive it; `journal_stream` is systemd's JOURNAL_STREAM, or
  /// null; `journal` is journald's socket.
  Output(int fd, const char* journal_stream,
         const std::filesystem::path& journal = "/run/systemd/journal/socket");

  /// Never waits. After a loss, the next line that is accepted has a warning before it: "N lines of
  /// the log were lost".
  void write(Level level, std::string_view text, Fields fields);

 private:
  bool put(Level level, std::string_view text, Fields fields);
  bool report_loss();

  std::optional<Journal> journal_;
  Stream stream_;
  std::uint64_t lost_ = 0;
};

}  // namespace ka::log
