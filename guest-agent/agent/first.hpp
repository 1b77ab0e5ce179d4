// SPDX-License-Identifier: Apache-2.0
// The agent as a guest's first program (`rdinit=`, `init=` on the kernel's command line), for
// guests in which nothing else would start it.
#pragma once

#include "base/clock.hpp"
#include "guest-agent/agent/program.hpp"

namespace ka::agent {

/// Starts the program that would have been the first without us, in this process, and the agent in
/// another one, once that program has mounted what the agent needs. Returns only when there is no
/// such program. `argv`: what the kernel gave us, which is meant for that program.
int run_first(const base::Clock& clock, char* const* argv, const Options& options);

}  // namespace ka::agent
