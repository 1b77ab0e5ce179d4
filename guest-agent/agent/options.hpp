// SPDX-License-Identifier: Apache-2.0
// The agent's command line.
#pragma once

#include <optional>

#include "guest-agent/agent/program.hpp"

namespace ka::agent {

inline constexpr const char* kUsage =
    "Confines the containers of this VM to the vCPUs that the host assigns to them.\n"
    "\n"
    "It listens on vsock, on a virtio-serial port and on a unix socket, as far as the VM has "
    "them.\n"
    "As the VM's first program (rdinit=, init=) it also starts the real init.\n"
    "\n"
    "Options:\n"
    "  --port N            of vsock (1031)\n"
    "  --serial-port NAME  of virtio-serial (org.kata-affinity.agent.0)\n"
    "  --socket PATH       of the unix socket (kata-affinity/agent.sock below --run)\n"
    "  --proc DIR          where proc is mounted (/proc)\n"
    "  --sys DIR           where sysfs is mounted (/sys)\n"
    "  --run DIR           where cpus.json and the socket are put (/run)\n"
    "  --help              this text\n"
    "  --version           its version\n"
    "\n"
    "Examples:\n"
    "  systemctl enable --now kata-affinity-agent    in a guest with systemd\n"
    "  kata-affinity-agent prestart                  as a hook of kata-agent; poststop too\n";

/// Absent: the arguments are wrong.
std::optional<Options> parse(int argc, const char* const* argv);

}  // namespace ka::agent
