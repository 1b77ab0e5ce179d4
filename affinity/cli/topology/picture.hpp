// SPDX-License-Identifier: Apache-2.0
// A machine drawn as text, at most 80 columns wide.
#pragma once

#include <string>

#include "policy/facts/topology.hpp"

namespace ka::cli {

/// Sockets, in them nodes, in them L3 caches, each with its cores in brackets; then what is special
/// about some CPUs, and the distances between nodes.
std::string draw(const policy::Topology& topology);

}  // namespace ka::cli
