// SPDX-License-Identifier: Apache-2.0
// What a self-test of the host asks in a container: the agent's program is mounted there, where an
// image may have no other.
#pragma once

#include <cstdio>

#include "guest-agent/agent/kernel.hpp"

namespace ka::agent {

/// Prints on which CPUs the first process of the container may run, and which there are: its status
/// and cpuinfo. False: they cannot be read, or not be printed.
bool show_affinity(const Roots& roots, std::FILE* out);

}  // namespace ka::agent
