// The agent's command line.
#pragma once

#include <optional>

#include "guest-agent/agent/program.hpp"

namespace ka::agent {

inline constexpr const char* kUsage =
    "Keeps the processes of containers in this VM on the vCPUs that their host names.\n"
    "\n"
    "  kata-affinity-agent [--port N] [--serial-port NAME] [--socket PATH]\n"
    "                      [--proc DIR] [--sys DIR] [--run DIR]\n"
    "  kata-affinity-agent prestart|poststop    as a hook of kata-agent (guest_hook_path)\n"
    "  kata-affinity-agent --version\n"
    "\n"
    "It listens on vsock (port 1031), on a unix socket below /run, and on the virtio-serial port\n"
    "org.kata-affinity.agent.0, whichever the VM has.\n"
    "As the VM's first program (rdinit=, init=) it also starts the one that would have been.\n";

/// Absent: the arguments are wrong.
std::optional<Options> parse(int argc, const char* const* argv);

}  // namespace ka::agent
