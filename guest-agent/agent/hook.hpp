// SPDX-License-Identifier: Apache-2.0
// The agent as a guest hook of Kata (`guest_hook_path`): kata-agent starts it for each container,
// with the kind of hook as its argument and the container's state on standard input
// (kata-containers, src/agent/src/sandbox.rs, add_hooks).
#pragma once

#include <optional>
#include <string_view>

#include "base/clock.hpp"
#include "guest-agent/agent/program.hpp"

namespace ka::agent {

enum class Hook { kPrestart, kPoststop };

/// By kata-agent's name of it.
std::optional<Hook> hook_named(std::string_view name);

/// Passes standard input to the agent that runs in this guest, and starts one where
/// there is none: the exit status. Returns when the container is placed: a container's program
/// starts after its prestart hooks. It takes 8 s at most; kata-agent gives hooks 10.
int run_hook(const base::Clock& clock, Hook hook, const Options& options);

/// Where the agent listens for what is inside of the guest.
std::filesystem::path socket_of(const Options& options);

}  // namespace ka::agent
