// SPDX-License-Identifier: Apache-2.0
// What a pass writes beside masks: the cgroup around the threads (cgroup = "manage"), the
// interrupts of passed-through devices, and what resource classes come to.
#include <string>
#include <utility>

#include "affinity/line/pass.hpp"
#include "affinity/line/planning.hpp"
#include "affinity/line/sandbox.hpp"

namespace ka::line {

using board::NotificationKind;

CgroupMode cgroup_mode(const Node& node, const Sandbox& sandbox) {
  const bool manage = node.settings_for(node.pod_of(sandbox)).manage_cgroup;
  if (!manage || node.is_given_back(sandbox)) return CgroupMode::kObey;
  return node.options.observe ? CgroupMode::kWatch : CgroupMode::kManage;
}

/// Makes room for the threads' way to their places. Where the cgroup cannot be written, the sandbox
/// is planned inside what it allows.
void Pass::widen_cgroup(Sandbox& sandbox) {
  CgroupKeeper& keeper = sandbox.keeper();
  if (keeper.is_unread()) return report_cgroup_problem(sandbox, "read");
  if (!keeper.has_seen() || (node_.options.observe && !node_.is_given_back(sandbox))) return;
  if (keeper.in_charge() && keeper.is_overwritten()) report_overwritten_cgroup(sandbox);
  const bool was_in_charge = keeper.in_charge();
  const bool wrote = keeper.widen(sandbox.cgroup_wanted(), node_.foreign_to(sandbox),
                                  node_.clock.now(), cgroup_writer(sandbox));
  if (wrote) {
    record_cgroup_write(sandbox);
    sandbox.observe_masks(node_.probe(stats_), node_.pod_of(sandbox));
  }
  if (keeper.in_charge()) return;
  if (was_in_charge || keeper.has_failed()) report_cgroup_problem(sandbox, "write");
  if (was_in_charge || wrote) plan(node_, sandbox);
}

/// Once for each reason: it is tried again and again.
void Pass::report_cgroup_problem(Sandbox& sandbox, const char* attempt) const {
  if (!sandbox.keeper().has_new_problem()) return;
  node_.board.notify(
      NotificationKind::kUnmanaged, sandbox.id(),
      std::string("cannot ") + attempt + " its cgroup: " + sandbox.keeper().problem());
}

CgroupWriter Pass::cgroup_writer(const Sandbox& sandbox) {
  return {node_.cpusets, [this, &sandbox] { node_.registry.save(sandbox.id()); },
          node_.topology.all()};
}

/// True when it wrote.
bool Pass::narrow_cgroup(Sandbox& sandbox) {
  if (node_.options.observe) return false;
  CgroupKeeper& keeper = sandbox.keeper();
  const bool was_in_charge = keeper.in_charge();
  const bool wrote =
      keeper.narrow(sandbox.cgroup_wanted(), node_.clock.now(), cgroup_writer(sandbox));
  if (wrote) record_cgroup_write(sandbox);
  if (was_in_charge && !keeper.in_charge()) report_cgroup_problem(sandbox, "write");
  return wrote;
}

/// Kata writes there when a container comes, changes or goes: of a pod that is going also after
/// kubelet has given its CPUs to another. The kernel does not report the writer: what speaks for
/// Kata is that it writes the union of the containers' CPUs.
void Pass::report_overwritten_cgroup(const Sandbox& sandbox) const {
  const policy::CpuSet cpus = sandbox.keeper().written();
  const policy::CpuSet foreign = cpus & node_.foreign_to(sandbox);
  std::string text =
      "Kata or another program set its cgroup to CPUs \"" + policy::format_list(cpus) + '"';
  const policy::plan::SandboxPlan* plan = sandbox.plan();
  if (plan != nullptr && plan->mask == cpus) text += ", those of its containers, as Kata does";
  if (!foreign.empty()) text += "; CPUs " + policy::format_list(foreign) + " belong to another pod";
  node_.board.notify(NotificationKind::kCgroupOverwritten, sandbox.id(), std::move(text));
}

void Pass::record_cgroup_write(const Sandbox& sandbox) {
  ++outcome_.cgroups;
  node_.board.notify(
      NotificationKind::kCgroupWritten, sandbox.id(),
      "cgroup set to CPUs \"" + policy::format_list(sandbox.keeper().written()) + '"');
}

/// What is about to be written is saved first, here and below: after kill -9 the next daemon can
/// give it back.
void Pass::place_interrupts(Sandbox& sandbox) {
  const bool give_back = node_.is_given_back(sandbox);
  if ((node_.options.observe && !give_back) || !node_.registry.gate().may_widen()) return;
  InterruptKeeper& keeper = sandbox.interrupts();
  if (!give_back && keeper.prepare()) node_.registry.save(sandbox.id());
  const policy::CpuSet foreign = node_.foreign_to(sandbox);
  const auto now = node_.clock.now();
  const InterruptWrites writes = give_back ? keeper.give_back(node_.roots, foreign)
                                 : extent_ == Extent::kAll
                                     ? keeper.place(node_.roots, foreign, now)
                                     : keeper.leave(node_.roots, foreign, now);
  outcome_.interrupts += writes.done;
  outcome_.errors.transient += writes.failed;
  outcome_.errors.permission += static_cast<int>(writes.refused.size());
  for (const std::string& text : writes.refused)
    node_.board.notify(NotificationKind::kUnmanaged, sandbox.id(), text);
}

void Pass::place_classes(Sandbox& sandbox) {
  const bool give_back = node_.is_given_back(sandbox);
  if ((node_.options.observe && !give_back) || extent_ != Extent::kAll) return;
  ClassKeeper& keeper = sandbox.classes();
  const ClassWriters writers{node_.calls, stats_, node_.cpusets};
  if (!give_back && keeper.prepare()) node_.registry.save(sandbox.id());
  const bool is_recorded = !node_.registry.unsaved().contains(sandbox.id());
  const ClassWrites writes =
      give_back ? keeper.give_back(writers) : keeper.place(writers, node_.clock.now(), is_recorded);
  for (const NiceWrite& write : writes.unsettled)
    node_.unsettled_nices[write.key] = {sandbox.id(), write.value};
  for (const int tid : writes.reverted) report_undone(node_, sandbox.id(), tid, "nice value");
  outcome_.classes += writes.done;
  outcome_.errors.transient += writes.failed;
  outcome_.errors.permission += static_cast<int>(writes.refused.size());
  for (const std::string& text : writes.refused)
    node_.board.notify(NotificationKind::kUnmanaged, sandbox.id(), text);
}

bool Pass::interrupts_must_leave(const Sandbox& sandbox) const {
  const bool writes = !node_.options.observe && !node_.is_given_back(sandbox);
  return writes && sandbox.interrupts().must_leave(node_.foreign_to(sandbox));
}

}  // namespace ka::line
