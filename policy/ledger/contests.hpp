// SPDX-License-Identifier: Apache-2.0
// CPUs that more than one pod owns, of any runtime: kubelet can assign one twice
// (kubernetes/kubernetes#140498).
#pragma once

#include <string>
#include <vector>

#include "policy/ledger/ledger.hpp"

namespace ka::policy::ledger {

/// A container that owns CPUs which another pod owns too.
struct Contender {
  std::string sandbox;    ///< its pod's id; empty: no source but kubelet has reported the container
  std::string pod;        ///< "namespace/name" where it is known, else the pod's uid or id
  std::string container;  ///< its name, else its id; empty: the pod as a whole
  bool is_vm = false;

  auto operator<=>(const Contender&) const = default;
};

struct Contest {
  CpuSet cpus;
  std::vector<Contender> contenders;  ///< sorted

  bool operator==(const Contest&) const = default;
};

/// One for each set of contenders, by these.
std::vector<Contest> contests_of(const Ledger& ledger);

}  // namespace ka::policy::ledger
