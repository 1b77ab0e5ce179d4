// SPDX-License-Identifier: Apache-2.0
// Where shims log: the fifo "log" in the bundle, which containerd copies to its own log.
#pragma once

#include <string>

namespace ka::proxy {

/// Writes a warning as one line. Never waits, since there may be no reader.
void write_shim_log(const std::string& text);

}  // namespace ka::proxy
