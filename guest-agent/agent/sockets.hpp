// SPDX-License-Identifier: Apache-2.0
// Where the agent's descriptors come from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "guest-agent/agent/kernel.hpp"

namespace ka::agent {

/// Listens on vsock, for any of the guest's own CIDs. kUnavailable: the guest has none.
base::Result<base::Fd> listen_vsock(std::uint32_t port);
/// Listens on a unix socket that only root may connect to; a stale socket is replaced. kConflict:
/// another program listens there.
base::Result<base::Fd> listen_unix(const std::filesystem::path& path);
/// The next connection; empty when there is none, or when it comes from elsewhere than the host
/// (CID 2) or this guest's root. kTransient: none can be accepted now.
base::Result<base::Fd> accept_host(int listener);

/// Opens the virtio-serial port of that name; empty where the guest does not have it.
base::Fd open_serial(const Roots& roots, const std::string& name);

/// The kernel's messages about devices (NETLINK_KOBJECT_UEVENT). kUnavailable: it has none.
base::Result<base::Fd> open_uevents();
/// What one read of it reports: CPUs came, went or changed; a serial port came.
struct Uevents {
  bool cpus = false;
  bool ports = false;
};
/// Reads all that is there. Lost messages count as both.
Uevents read_uevents(int fd);

}  // namespace ka::agent
