// SPDX-License-Identifier: Apache-2.0
// A real shim whose proxy was killed.
//
// containerd sees its connection end, considers the shim dead and calls `delete`, which is written
// to clean up after a dead shim. But the real one is alive, and nothing else would ever end it.
#pragma once

#include <filesystem>

namespace ka::proxy {

/// Ends the real shim of the bundle, and removes both sockets, where the bundle's address is that
/// of a proxy that is gone. Does nothing while the proxy lives: then the pod has other containers.
void end_orphan(const std::filesystem::path& bundle, const std::filesystem::path& proc = "/proc");

}  // namespace ka::proxy
