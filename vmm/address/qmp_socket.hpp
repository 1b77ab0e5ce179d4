// SPDX-License-Identifier: Apache-2.0
// Which QMP sockets we may connect to.
#pragma once

#include <filesystem>

#include "base/result.hpp"

namespace ka::vmm {

/// kInvalid, saying why, for the QMP socket that Kata made for itself: "qmp.sock" below vc/vm,
/// run/kata or a containerd bundle, also by way of a symbolic link. QEMU serves one client a
/// socket, Kata's shim holds that place for the VM's life, and a client that waits in the queue
/// would take it should the shim ever reconnect. kInvalid also for a path that is not absolute,
/// too long for a socket, not printable, or that is there and is no socket. Any other error: that
/// cannot be seen now.
base::Result<void> check_qmp_socket(const std::filesystem::path& socket);

/// The same of a server that we are connected to, by the name that it has bound: a hard link or a
/// bind mount may have led to it.
base::Result<void> check_qmp_server(const std::filesystem::path& bound);

}  // namespace ka::vmm
