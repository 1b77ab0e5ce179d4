// SPDX-License-Identifier: Apache-2.0
// A running daemon reads what setup wrote when systemd reloads it.
#pragma once

#include "base/result.hpp"

namespace ka::cli {

/// Reloads kata-affinityd. False: it is not running, or the node has no systemd. An error has what
/// systemctl printed.
base::Result<bool> reload_daemon();

}  // namespace ka::cli
