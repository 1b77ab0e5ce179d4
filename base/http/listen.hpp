// SPDX-License-Identifier: Apache-2.0
// Sockets to listen on: bound, listening, non-blocking, not inherited.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <filesystem>
#include <string>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace ka::http {

/// A unix socket owned exclusively: the lock beside it ("<path>.lock") is held as long as this
/// lives, and the socket is removed at the end.
class UnixListener {
 public:
  /// Binds `path` with this mode, making its directory where there is none, which those can enter
  /// who can connect. A socket that a dead process left there is replaced. kConflict: another
  /// process listens there; kInvalid: the path is too long or is something else than a socket.
  static base::Result<UnixListener> open(const std::filesystem::path& path, mode_t mode = 0600);

  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;
  UnixListener(UnixListener&&) noexcept = default;
  UnixListener& operator=(UnixListener&&) = delete;
  ~UnixListener();

  int fd() const { return socket_.get(); }
  const std::filesystem::path& path() const { return path_; }

  /// False where the path still names the socket. Where others have removed it, or left a dead one
  /// in its place, it is bound and locked as at the start: true, and fd() is another one. Any
  /// error: that cannot be done now, and fd() stays, which nobody can connect to.
  base::Result<bool> restore();

 private:
  UnixListener(std::filesystem::path path, mode_t mode) : path_(std::move(path)), mode_(mode) {}
  base::Result<void> lock();
  base::Result<void> bind();
  bool is_bound() const;

  std::filesystem::path path_;
  mode_t mode_;
  base::Fd lock_;
  base::Fd socket_;
  struct stat file_{};  ///< which names the socket
};

/// Listens on "address:port" (numeric; "[::1]:9101" for IPv6). Port 0 takes a free one.
base::Result<base::Fd> listen_tcp(const std::string& address);

}  // namespace ka::http
