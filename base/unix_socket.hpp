// SPDX-License-Identifier: Apache-2.0
// Unix stream sockets by their paths, close-on-exec.
#pragma once

#include <sys/un.h>

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

/// Connects to the server at `path`. `flags`: 0 or SOCK_NONBLOCK. kGone: no server listens there;
/// kTransient: its backlog is full (only with SOCK_NONBLOCK, otherwise the call waits).
Result<Fd> connect_unix(const std::filesystem::path& path, int flags);

/// Listens at `path`, non-blocking, for its owner only (mode 0600). kConflict: something is there.
Result<Fd> listen_unix(const std::filesystem::path& path);

}  // namespace ka::base
