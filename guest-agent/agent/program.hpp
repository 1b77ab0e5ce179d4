// SPDX-License-Identifier: Apache-2.0
// The program: everything put together, on one loop.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "guest-agent/agent/kernel.hpp"
#include "guest-agent/protocol/limits.hpp"

namespace ka::agent {

struct Options {
  Roots roots;
  std::uint32_t port = guest::kPort;             ///< on vsock
  std::string serial_port = guest::kSerialPort;  ///< its name
  std::filesystem::path socket;  ///< a unix socket to listen on; empty: below `roots.run`
};

/// Serves until it is killed. Its exit status; 0 at once where another one serves already.
int run(const Options& options);

}  // namespace ka::agent
