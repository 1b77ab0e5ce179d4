// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/plain_pods.hpp"

namespace ka::line {

/// A VM that is yet to come has a shim proxy or a domain. NRI reports a VM with its pod, before the
/// pod has a container.
bool is_plain(const policy::ledger::PodRecord& pod) {
  const bool is_reported = !pod.pod_uid.empty() || !pod.pod_name.empty() || !pod.handler.empty();
  return is_reported && !pod.vmm && !pod.proxy && pod.domain.empty() &&
         pod.requested_domain.empty();
}

policy::CpuSet own_cpus(const policy::ledger::PodRecord& pod,
                        const policy::ledger::Ledger& ledger) {
  policy::CpuSet cpus;
  for (const auto& [id, container] : pod.containers) {
    if (container.facts.exclusive && !container.facts.exited) cpus |= container.facts.cpus;
  }
  return cpus - ledger.contested();
}

}  // namespace ka::line
