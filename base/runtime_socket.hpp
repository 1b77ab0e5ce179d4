// SPDX-License-Identifier: Apache-2.0
// Sockets named by an untrusted party.
#pragma once

#include <filesystem>
#include <optional>

namespace ka::base {

/// A socket's path with links resolved, where it lies in a directory of the container runtime, of
/// Kata or of libvirt below `run`: vc, kata, containerd, libvirt. Absent for any other: a command
/// line that a tenant may have chosen names sockets of the whole machine. What lies in a
/// container's root file system ("rootfs") is the container's.
std::optional<std::filesystem::path> runtime_socket(const std::filesystem::path& run,
                                                    const std::filesystem::path& socket);

}  // namespace ka::base
