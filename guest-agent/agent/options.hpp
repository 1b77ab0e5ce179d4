// SPDX-License-Identifier: Apache-2.0
// The agent's command line.
#pragma once

#include <string>

#include "guest-agent/agent/program.hpp"
#include "policy/facts/expected.hpp"

namespace ka::agent {

inline constexpr const char* kUsage =
    "Confines the containers of this VM to the vCPUs that the host assigns to them.\n"
    "\n"
    "It listens on vsock, a virtio-serial port and a unix socket, if present.\n"
    "As the VM's first program (rdinit=, init=) it also starts the real init.\n"
    "\n"
    "Options:\n"
    "  --port N            vsock port (default: 1031)\n"
    "  --serial-port NAME  virtio-serial port (default: org.kata-affinity.agent.0)\n"
    "  --socket PATH       unix socket (default: kata-affinity/agent.sock in --run)\n"
    "  --proc DIR          where proc is mounted (default: /proc)\n"
    "  --sys DIR           where sysfs is mounted (default: /sys)\n"
    "  --run DIR           directory of cpus.json and the socket (default: /run)\n"
    "  --show-affinity     show where process 1 may run, and all CPUs, and exit\n"
    "  --help              show this help and exit\n"
    "  --version           show the version and exit\n"
    "\n"
    "Examples:\n"
    "  systemctl enable --now kata-affinity-agent    in a guest with systemd\n"
    "  kata-affinity-agent prestart                  as a hook of kata-agent\n"
    "  kata-affinity-agent poststop                  the same, when a container ends\n";

/// The error says which argument is wrong, and how.
Expected<Options, std::string> parse(int argc, const char* const* argv);

}  // namespace ka::agent
