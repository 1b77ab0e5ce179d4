// SPDX-License-Identifier: Apache-2.0
// Would a pod fit, where, and whom would it move? Its creation, tried on a copy of the books. And
// what would become of a whole node.
#pragma once

#include <string>
#include <vector>

#include "policy/managed/books.hpp"

namespace ka::policy::managed {

struct TrialContainer {
  Candidate candidate;
  Locality locality;
  bool ends = false;  ///< an init container: it has ended when the next one is created
};

struct Trial {
  struct Place {
    Entry entry;
    CpuSet cpus;
  };
  struct Move {
    Entry entry;
    CpuSet from, to;
  };

  std::vector<Place> containers;  ///< the pod's, as they would be when all are there
  std::vector<Move> moves;        ///< other containers whose CPUs would change
  bool refused = false;           ///< Rules::refuse, and one of them would not be created

  /// Each of its containers would have the class that is asked for.
  bool fits() const;
};

/// Containers are created in their order. One that ends shows what it would have until then.
Trial try_pod(const Books& books, const std::vector<TrialContainer>& containers);

/// What would become of the containers of a node, all that the runtime has, if it came to be
/// managed. `books`: empty.
Trial try_takeover(Books books, const std::vector<Listed>& all);

}  // namespace ka::policy::managed
