// SPDX-License-Identifier: Apache-2.0
// Writes to journald in its own protocol (https://systemd.io/JOURNAL_NATIVE_PROTOCOL): a datagram
// an entry, so that fields are fields and can be searched for (`journalctl SANDBOX=...`).
//
// Not through sd_journal_sendv(): its socket blocks for as long as journald does not read, while a
// container runtime may be waiting for the daemon, and it reports success where there is no
// journald, so that the entry would not go to standard error instead (libsystemd 252, strace). The
// shim proxy has this room, too, and would load libsystemd once a sandbox.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.hpp"
#include "base/log/log.hpp"

namespace ka::log {

class Journal {
 public:
  /// Whether `fd` (standard error) is connected to the journal, by systemd's JOURNAL_STREAM.
  static bool is_behind(int fd, const char* journal_stream);

  explicit Journal(std::filesystem::path socket);

  /// False: journald does not take it now.
  bool send(Level level, std::string_view text, Fields fields) const;

 private:
  std::filesystem::path path_;
  base::Fd socket_;
};

/// An entry: MESSAGE as text, PRIORITY, SYSLOG_IDENTIFIER, and each field under its name in
/// capital letters.
std::string to_entry(Level level, std::string_view text, Fields fields);

}  // namespace ka::log
