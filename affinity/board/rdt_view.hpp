// SPDX-License-Identifier: Apache-2.0
// What RDT classes have come to on this node, by kata-affinity-helper's last response.
#pragma once

#include <map>
#include <string>

namespace ka::board {

struct RdtView {
  struct Class {
    std::string problem;                 ///< why none of its threads has it; empty: they may
    std::map<int, std::string> threads;  ///< by tid: why it does not have it; empty: it has
  };

  std::string problem;  ///< why no thread can have one; empty: nothing is in the way
  bool silent = false;  ///< the helper does not respond
  std::map<std::string, Class> classes;

  /// Why a thread does not have the class; empty: it has.
  std::string problem_of(int tid, const std::string& name) const;
};

}  // namespace ka::board
