// SPDX-License-Identifier: Apache-2.0
// CPUs that are assigned exclusively more than once, by containers of any runtime: kubelet can
// assign one to two pods, or to two containers of a pod (kubernetes/kubernetes#140498).
#pragma once

#include <string>
#include <vector>

#include "policy/ledger/ledger.hpp"

namespace ka::policy::ledger {

/// A container that owns CPUs which another container owns too.
struct Contender {
  std::string sandbox;    ///< its pod's id; empty: no source but kubelet has reported the container
  std::string pod;        ///< "namespace/name" where it is known, else the pod's uid or id
  std::string container;  ///< its name, else its id; empty: the pod as a whole
  bool is_vm = false;
  std::string owner;  ///< its pod's uid where it is known, else the id: the same once reported
  /// A prepared claim on CPUs that no container owns: `pod` is the claim's uid.
  bool is_claim = false;

  auto operator<=>(const Contender&) const = default;
};

struct Contest {
  CpuSet cpus;
  std::vector<Contender> contenders;  ///< sorted

  bool operator==(const Contest&) const = default;
};

/// One for each set of contenders, by these.
std::vector<Contest> contests_of(const Ledger& ledger);

/// CPUs that more than one running container of the pod owns. An init container and its
/// successors own the same CPUs legitimately: it counts only where its source reports exits.
CpuSet contested_within(const PodRecord& pod);

CpuSet cpus_of(const std::vector<Contest>& contests);

/// Whether some CPU of `contest` has a contender there that it did not have in `before`.
bool has_new_contender(const Contest& contest, const std::vector<Contest>& before);

/// The contests of one container, each without the container itself.
std::vector<Contest> rivals_of(const std::vector<Contest>& contests, const PodRecord& pod,
                               const std::string& container);

}  // namespace ka::policy::ledger
