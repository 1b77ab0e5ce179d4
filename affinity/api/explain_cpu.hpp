// SPDX-License-Identifier: Apache-2.0
// Whose a CPU is, as which source says, since when, and what runs there.
#pragma once

#include <boost/json/fwd.hpp>

namespace ka::line {
class Node;
}

namespace ka::api {

/// Precondition: the machine has the CPU.
boost::json::object explain_cpu(const line::Node& node, int cpu);

}  // namespace ka::api
