// SPDX-License-Identifier: Apache-2.0
// Everything that can be asked of a machine, and all the answers.
#pragma once

#include <string>

#include "policy/facts/topology.hpp"

namespace ka::test {

/// Asks for one CPU, some, half of them and all, with every strategy and option, every policy of
/// the topology manager, and fills the machine with pods. Checks that nothing is refused for which
/// there are CPUs. The answers come back as text, to be compared with those of another source.
std::string answers_of(const policy::Topology& topology);

/// The topology written as JSON and read again.
policy::Topology through_json(const policy::Topology& topology);

}  // namespace ka::test
