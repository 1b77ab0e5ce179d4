// SPDX-License-Identifier: Apache-2.0
// cgroup = "manage": the writes to a sandbox's cgroup around those to its threads.
#include <string>
#include <utility>

#include "affinity/engine/engine.hpp"
#include "affinity/engine/sandbox.hpp"

namespace ka::engine {

bool Engine::is_given_back(const Sandbox& sandbox) const {
  return !options_.enable || sandbox.released();
}

/// What the threads of a domain have is libvirt's to say from then on: its record may differ from
/// thread to thread, and it also opens the cgroups that stood in the way.
bool Engine::may_be_left_alone(const Sandbox& sandbox) const {
  if (!is_given_back(sandbox)) return false;
  const bool is_domain = !ledger_.find(sandbox.id())->domain.empty();
  return sandbox.left_alone() || is_domain || sandbox.has_originals();
}

CgroupMode Engine::cgroup_mode(const Sandbox& sandbox) const {
  const bool manage = settings_for(*ledger_.find(sandbox.id())).manage_cgroup;
  if (!manage || is_given_back(sandbox)) return CgroupMode::kObey;
  return options_.observe ? CgroupMode::kWatch : CgroupMode::kManage;
}

/// Makes room for the threads' way to their places. Where the cgroup cannot be written, the sandbox
/// is planned inside what it allows.
void Engine::widen_cgroup(Sandbox& sandbox, base::ThreadStats& stats, Outcome& outcome) {
  CgroupKeeper& keeper = sandbox.keeper();
  if (!keeper.has_seen() || (options_.observe && !is_given_back(sandbox))) return;
  if (keeper.in_charge() && keeper.is_overwritten()) cgroup_overwritten(sandbox);
  const bool was_in_charge = keeper.in_charge();
  const policy::CpuSet foreign = ledger_.exclusive_to_others(sandbox.id());
  const bool wrote = keeper.widen(sandbox.plan()->cgroup, foreign, clock_.now(), cpusets_);
  if (wrote) {
    wrote_cgroup(sandbox, outcome);
    sandbox.observe_masks(eyes(stats), *ledger_.find(sandbox.id()));
  }
  if (keeper.in_charge() || !(wrote || was_in_charge)) return;
  if (was_in_charge) {
    board_.notify(NotificationKind::kUnmanaged, sandbox.id(),
                  "cannot write its cgroup: " + keeper.problem());
  }
  plan(sandbox);
}

/// True when it wrote.
bool Engine::narrow_cgroup(Sandbox& sandbox, Outcome& outcome) {
  if (options_.observe) return false;
  const bool wrote = sandbox.keeper().narrow(sandbox.plan()->cgroup, clock_.now(), cpusets_);
  if (wrote) wrote_cgroup(sandbox, outcome);
  return wrote;
}

/// Kata writes there when a container comes, changes or goes: of a pod that is going also after
/// kubelet has given its CPUs to another. The kernel does not say who wrote.
void Engine::cgroup_overwritten(const Sandbox& sandbox) {
  const policy::CpuSet cpus = sandbox.keeper().written();
  const policy::CpuSet foreign = cpus & ledger_.exclusive_to_others(sandbox.id());
  std::string text =
      "Kata or another program set its cgroup to CPUs \"" + policy::format_list(cpus) + '"';
  if (!foreign.empty()) text += "; CPUs " + policy::format_list(foreign) + " belong to another pod";
  board_.notify(NotificationKind::kCgroupOverwritten, sandbox.id(), std::move(text));
}

void Engine::wrote_cgroup(const Sandbox& sandbox, Outcome& outcome) {
  ++outcome.cgroups;
  const CgroupKeeper& keeper = sandbox.keeper();
  board_.notify(NotificationKind::kCgroupWritten, sandbox.id(),
                "cgroup set to CPUs \"" + policy::format_list(keeper.written()) + '"');
}

}  // namespace ka::engine
