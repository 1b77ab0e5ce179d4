// SPDX-License-Identifier: Apache-2.0
// Which threads are to have which RDT class.
#pragma once

#include <string>
#include <vector>

#include "affinity/line/node.hpp"
#include "policy/facts/rdt.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::rdt {

struct Group {
  std::string name;  ///< of the class
  policy::RdtShares shares;
  std::vector<policy::ThreadKey> threads;

  bool operator==(const Group&) const = default;
};

/// From the plans as they are now: classes that have a thread, by name.
std::vector<Group> wants_of(const line::Node& node);

}  // namespace ka::rdt
