// SPDX-License-Identifier: Apache-2.0
// Phrases that messages are made of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "policy/facts/id_set.hpp"

namespace ka::messages {

/// Of what the helper is asked for.
inline constexpr const char* kHelperPending =
    "the helper (kata-affinity-helper) has not responded yet";

/// "1 thread", "2 threads", "2 sandboxes".
std::string counted(long long number, std::string_view noun);

/// "CPU 7", "CPUs 2-3,8", "no CPU".
std::string cpus_text(const policy::CpuSet& cpus);
/// "CPU 7 is", "CPUs 2-3 are".
std::string cpus_are(const policy::CpuSet& cpus);
/// cpus_text() of a set in the kernel's list format, as JSON has it.
std::string cpus_text(std::string_view list);

/// "node 1", "nodes 0-1".
std::string nodes_text(const policy::NodeSet& nodes);

/// "512 MiB": bytes, rounded.
std::string size_text(std::uint64_t bytes);

}  // namespace ka::messages
