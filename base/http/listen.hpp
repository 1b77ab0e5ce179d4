// SPDX-License-Identifier: Apache-2.0
// Sockets to listen on: bound, listening, non-blocking, not inherited.
#pragma once

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

 private:
  UnixListener(std::filesystem::path path, base::Fd lock, base::Fd socket)
      : path_(std::move(path)), lock_(std::move(lock)), socket_(std::move(socket)) {}

  std::filesystem::path path_;
  base::Fd lock_;
  base::Fd socket_;
};

/// Listens on "address:port" (numeric; "[::1]:9101" for IPv6). Port 0 takes a free one.
base::Result<base::Fd> listen_tcp(const std::string& address);

}  // namespace ka::http
