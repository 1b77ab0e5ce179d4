// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/vcpu_waits.hpp"

#include <utility>

#include "affinity/host/run_counters.hpp"
#include "affinity/line/sandbox.hpp"

namespace ka::line {

const VcpuWaits::Sums& VcpuWaits::read() {
  const auto is_gone = [this](const auto& entry) {
    return node_.sandboxes.find(entry.first) == nullptr;
  };
  std::erase_if(sums_, is_gone);
  std::erase_if(last_, is_gone);
  for (const auto& [id, sandbox] : node_.sandboxes) {
    if (sandbox->plan() != nullptr) read(id, *sandbox);
  }
  return sums_;
}

void VcpuWaits::read(const std::string& id, const Sandbox& sandbox) {
  ByContainer& sums = sums_[id];
  const auto before = std::exchange(last_[id], {});
  auto& last = last_[id];
  for (const ThreadView& thread : sandbox.threads()) {
    if (thread.facts.role != policy::Role::kVcpu) continue;
    const auto known = before.find(thread.facts.key);
    const std::uint64_t from = known == before.end() ? 0 : known->second;
    const auto counters = host::thread_counters(node_.roots.proc, thread.facts.key);
    const std::uint64_t now = counters ? counters->waited : from;
    const policy::plan::VcpuPlan* vcpu = sandbox.plan()->find_vcpu(thread.facts.vcpu_index);
    sums[vcpu == nullptr ? "" : vcpu->container] += now > from ? now - from : 0;
    last[thread.facts.key] = now;
  }
}

}  // namespace ka::line
