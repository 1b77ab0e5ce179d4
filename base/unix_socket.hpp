// SPDX-License-Identifier: Apache-2.0
// Unix stream sockets by their paths, close-on-exec.
#pragma once

#include <sys/un.h>

#include <chrono>
#include <filesystem>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace ka::base {

/// How many may wait to be accepted.
inline constexpr int kBacklog = 128;

/// kInvalid where the path is empty or too long for a socket.
Result<sockaddr_un> unix_address(const std::filesystem::path& path);

/// kInvalid for a path that is there and is no socket. Any other error: that cannot be seen now.
Result<void> check_is_socket(const std::filesystem::path& path);

/// Connects to the server at `path`; the socket is non-blocking. kGone: no server listens there;
/// kTransient: its backlog is full.
Result<Fd> connect_unix(const std::filesystem::path& path);

/// The same with a socket that blocks, in each call for no longer than `timeout`: then connecting
/// fails with kTransient, and reading and writing with EAGAIN.
Result<Fd> connect_unix(const std::filesystem::path& path, std::chrono::seconds timeout);

/// Listens at `path`, non-blocking, for its owner only (mode 0600). kConflict: something is there.
Result<Fd> listen_unix(const std::filesystem::path& path);

}  // namespace ka::base
