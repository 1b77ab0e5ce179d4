// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/drift.hpp"

#include <algorithm>

#include "affinity/host/movers.hpp"
#include "affinity/messages/events.hpp"
#include "affinity/messages/terms.hpp"

namespace ka::line {
namespace {

constexpr std::size_t kMostNamed = 3;

/// "vCPU 1", "emulator 4711".
std::string short_name_of(const policy::ThreadFacts& thread) {
  const bool is_vcpu = thread.role == policy::Role::kVcpu;
  return std::string(policy::role_term(thread.role)) + ' ' +
         std::to_string(is_vcpu ? thread.vcpu_index : thread.key.tid);
}

std::string names_of(const std::vector<ChangedMask>& changed) {
  std::string text;
  for (std::size_t i = 0; i < std::min(kMostNamed, changed.size()); ++i) {
    text += (i == 0 ? "" : ", ") + short_name_of(changed[i].thread->facts) + " from " +
            messages::cpus_text(changed[i].left) + " to " + messages::cpus_text(changed[i].now);
  }
  if (changed.size() <= kMostNamed) return text;
  return text + " and " + std::to_string(changed.size() - kMostNamed) + " more";
}

std::string suspects_text(const std::string& running) {
  return running.empty() ? "" : "; known to do that: " + running;
}

}  // namespace

std::string means_name(Means means) { return means == Means::kCpuset ? "cpuset" : "affinity"; }

Means means_of(const Node& node, const Sandbox& sandbox, bool written) {
  if (written) return Means::kCpuset;
  if (!node.cgroups || !sandbox.cgroup_cpus()) return Means::kAffinity;
  const auto now = node.cgroups->read(sandbox.cgroup());
  return now && now->cpus != *sandbox.cgroup_cpus() ? Means::kCpuset : Means::kAffinity;
}

std::string drift_text(const Node& node, const Sandbox& sandbox,
                       const std::vector<ChangedMask>& changed, Means means) {
  const std::string text =
      messages::drift_text(static_cast<int>(changed.size()), "thread") + ": " + names_of(changed);
  if (means == Means::kCpuset) return text + "; by a write to the cpuset of their cgroup";
  const bool is_domain = !node.pod_of(sandbox).domain.empty();
  return text + "; by sched_setaffinity(2) of " +
         (is_domain ? "libvirtd, which carried out an earlier plan late, or of " : "") +
         "another program" + suspects_text(host::running_movers(node.proc));
}

std::string interrupt_drift_text(const Node& node, int count) {
  return messages::drift_text(count, "interrupt") +
         suspects_text(host::running_interrupt_movers(node.proc));
}

std::string class_drift_text(int count) {
  return "another program changed " + messages::counted(count, "value") + " of resource classes";
}

}  // namespace ka::line
