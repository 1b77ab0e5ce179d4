// SPDX-License-Identifier: Apache-2.0
#include "affinity/managed/candidate.hpp"

#include "affinity/host/cgroup_names.hpp"

namespace ka::managed {

policy::managed::Candidate candidate_of(const nri::Described& container) {
  auto candidate = container.candidate;
  candidate.guaranteed = host::is_guaranteed_pod(container.pod_cgroup);
  candidate.cgroup = container.cgroup;
  return candidate;
}

}  // namespace ka::managed
