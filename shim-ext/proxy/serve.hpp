// SPDX-License-Identifier: Apache-2.0
// The process that is the proxy of a sandbox.
#pragma once

#include <string>

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"
#include "shim-ext/proxy/shared_pool.hpp"

namespace ka::proxy {

struct Place {
  std::string own_path;    ///< where containerd connects
  std::string shim_path;   ///< where the real shim listens
  std::string api_socket;  ///< where the daemon listens
  SharedPool pool;
};

/// Forks it off: a process of its own session that lives as long as the shim, in the bundle, with
/// nothing open but its sockets. Both are non-blocking; `guard` is a connection to the shim.
base::Result<void> serve_in_background(const base::Clock& clock, const Place& place,
                                       base::Fd listener, base::Fd guard);

}  // namespace ka::proxy
