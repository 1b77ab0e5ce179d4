// SPDX-License-Identifier: Apache-2.0
// The node as a picture.
#pragma once

#include <string>

#include "affinity/cli/map/node_map.hpp"

namespace ka::cli {

/// An SVG document: sockets, in them nodes, L3 caches, cores, CPUs, each CPU with the letter of its
/// owner, its vCPU and how many threads may run there (all of them where the pointer rests), and a
/// list of the owners. Whatever colours show is also shown by letters and words.
std::string draw_svg(const NodeMap& map);

}  // namespace ka::cli
