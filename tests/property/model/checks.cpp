// SPDX-License-Identifier: Apache-2.0
// Whether what the daemon did is right: each single write, what it knows after each step, and all
// that it promises when nothing is lost, late or broken any more.
#include <algorithm>

#include "tests/property/model/play.hpp"

namespace ka::model {

using policy::CpuSet;
using policy::ledger::Source;

namespace {

std::string list(const CpuSet& cpus) { return policy::format_list(cpus); }

}  // namespace

/// I2, and that nothing is widened while it is not known who owns what.
void Play::check_write(int tid) {
  ++writes_;
  kernel_.mirror_write(tid);
  const Pod* pod = world_.by_pid(vmm_of(tid));
  const auto released = released_.find(pod == nullptr ? std::string() : pod->id);
  const bool is_released = released != released_.end();
  if (is_released && released->second.is_done) {
    report_failure("thread " + std::to_string(tid) + " was released, and is written to");
  }
  const CpuSet gained = kernel_.calls.effective(tid) - before_;
  if (gained.empty()) return;
  const std::string what = "thread " + std::to_string(tid) + " was let onto " + list(gained);
  if (!knowledge_.owners_are_known()) report_failure(what + ", and who owns that is not known");
  const KnownPod* known = pod == nullptr ? nullptr : knowledge_.find(pod->id);
  if (is_released || known == nullptr || !known->vmm || known->vmm->pid != pod->pid) return;
  const CpuSet foreign = gained & knowledge_.foreign_to(pod->id);
  if (!foreign.empty()) report_failure(what + ", and " + list(foreign) + " is another pod's (I2)");
}

void Play::check() {
  if (const std::string text = kernel_.difference(); !text.empty()) {
    report_failure("the kernel disagrees: " + text);
  }
  for (const int pid : kernel_.strangers()) {
    const auto own = kernel_.calls.own.find(pid);
    if (own == kernel_.calls.own.end() || kernel_.machine.subset_of(own->second)) continue;
    report_failure("process " + std::to_string(pid) + ", which is no VMM, was placed (I9)");
  }
  note_originals();
  const auto ids = kernel_.line().node().sandbox_ids();
  const auto& unproved = kernel_.line().node().unproved;
  for (const auto& [id, pod] : knowledge_.pods()) {
    if (unproved.contains(id)) continue;  // since a start while its process cannot be examined
    if (pod.unsure || !pod.vmm || !kernel_.is_alive(pod.vmm->pid)) continue;
    if (std::ranges::find(ids, id) == ids.end()) report_failure("sandbox " + id + " is forgotten");
    check_pod(id, pod);
  }
  if (is_at_rest()) check_at_rest();
}

/// Nothing is left for the daemon to see or to do: all that it was told it could act on, and of
/// what it was not told nothing has changed under it.
bool Play::is_at_rest() {
  const auto ended = [this](const auto& entry) {
    return entry.second.vmm && !kernel_.is_alive(entry.second.vmm->pid);
  };
  return knowledge_.owners_are_known() && kernel_.is_seen() && dirty_.empty() &&
         unfinished_.empty() && kernel_.line().node().unproved.empty() &&
         std::ranges::none_of(knowledge_.pods(), ended);
}

/// I1 to I6 and I8, by what the daemon was told: that may be late, or wrong.
void Play::check_at_rest() {
  ++rests_;
  check_verify();
  for (const auto& [id, pod] : knowledge_.pods()) {
    if (pod.vmm && !pod.unsure && released_.contains(id)) check_released(id, pod);
    if (pod.vmm && !pod.unsure && is_held_to_plan(id)) check_place(id, pod);
  }
  check_kept();
}

/// Where a VM may be, and what a container that owns CPUs gets.
void Play::check_place(const std::string& id, const KnownPod& pod) {
  const CpuSet foreign = knowledge_.foreign_to(id);
  const bool in_pool =
      setup_.options.settings.housekeeping.kind == policy::plan::Housekeeping::Kind::kSharedPool;
  const CpuSet mask = pod.cpus();
  const CpuSet wide = mask.empty() || in_pool ? kernel_.online() : mask;
  const Place place{.id = id,
                    .pid = pod.vmm->pid,
                    .own = knowledge_.owned_by(pod),
                    .may = ((mask | wide) & kernel_.online()) - foreign,
                    .is_confined = is_confined(*world_.by_pid(pod.vmm->pid))};
  if (manages() && !is_domain(id)) check_cgroup(id, foreign);
  check_within(place);
  check_owned(place);
}

/// I1.
void Play::check_within(const Place& place) {
  for (const int tid : kernel_.threads_of(place.pid)) {
    const CpuSet on = kernel_.calls.effective(tid);
    if (on.subset_of(place.may) || !kernel_.allowed(tid).intersects(place.may)) continue;
    report_failure("thread " + std::to_string(tid) + " of " + place.id + " is on " + list(on) +
                   ", and may be on " + list(place.may) + " (I1)");
  }
}

/// Whoever was on a CPU that is another's by now has left it, where he could.
void Play::check_pod(const std::string& id, const KnownPod& pod) {
  const bool is_held = !dirty_.contains(id) && !released_.contains(id);
  if (!is_held || !knowledge_.owners_are_known()) return;
  const CpuSet foreign = knowledge_.foreign_to(id);
  for (const int tid : kernel_.threads_of(pod.vmm->pid)) {
    const CpuSet on = kernel_.calls.effective(tid) & foreign;
    if (on.empty() || kernel_.allowed(tid).subset_of(foreign)) continue;
    report_failure("thread " + std::to_string(tid) + " of " + id + " stays on " + list(on) +
                   ", which is another pod's (I2)");
  }
}

/// Everything that was lost is told, everything that failed is mended, and time passes.
void Play::quiesce() {
  writes_until_kill_ = 0;
  kernel_.mend();
  kernel_.set_online(kernel_.machine);
  mail_.clear();
  tick();
  read_assigned();
  synchronize();
  find_libvirt();
  describe_domains();
  reconcile(true);
  if (!setup_.has_nri) handle(whole_truth());
  read_assigned();  // what the API assigned to a pod that ended is forgotten until it answers again
  if (!knowledge_.owners_are_known()) reclaim_all();
  unpin();
  for (int i = 0; i < 2; ++i) {
    kernel_.clock.advance(std::chrono::seconds(60));
    tick();
  }
  check_keeps_released();
  check_quiescent();
}

/// The next daemon leaves alone what this one has released. Then an operator takes it all back.
void Play::check_keeps_released() {
  if (released_.empty()) return;
  if (is_at_rest()) check_at_rest();
  check_restart();
  if (is_at_rest()) check_at_rest();
  reclaim_all();
}

void Play::check_quiescent() {
  if (!knowledge_.owners_are_known()) report_failure("it waits for nobody knows what");
  if (!kernel_.line().node().gate().may_widen()) report_failure("it widens nothing for ever");
  check_verify();
  for (const Pod& pod : world_.pods()) {
    if (pod.pid != 0 && pod.runs && !pod.gone) check_alone(pod);
  }
  kernel_.calls.writes.clear();
  kernel_.line().reconcile_all();
  if (!kernel_.calls.writes.empty()) report_failure("the same plan is written twice (I6)");
  check_kept();
  check_restart();
}

/// The daemon's own judgement of all of them, by the kernel's state. That a source is away is said,
/// and is no fault.
void Play::check_verify() {
  const line::VerifyReport report = kernel_.verifier().verify();
  check_released_are_named(report);
  for (const auto& finding : report.findings) {
    if (finding.severity == line::Severity::kNote) continue;
    const bool is_degraded =
        finding.severity == line::Severity::kDegraded && finding.reason != "cgroup";
    if (is_degraded || is_trapped(finding.sandbox)) continue;
    if (finding.reason == "source-down" && !are_all_up()) continue;
    report_failure("verify: " + finding.invariant + ": " + finding.sandbox + ": " + finding.text);
  }
}

/// Its cgroup allows CPUs of others alone: kubelet has given its container others, and updates none
/// that has exited, or not yet.
bool Play::is_trapped(const std::string& id) {
  const auto known = knowledge_.pods().find(id);
  if (known == knowledge_.pods().end() || !known->second.vmm) return false;
  const int pid = known->second.vmm->pid;
  if (!kernel_.is_alive(pid)) return false;
  // Whether the daemon knows of the container that its CPUs are for is not certain.
  if (known->second.unsure) return world_.by_pid(pid)->confined;
  return kernel_.allowed(pid).subset_of(knowledge_.perhaps_foreign_to(id));
}

/// The same by the node as it is.
void Play::check_alone(const Pod& pod) {
  const CpuSet foreign = setup_.assigner != Assigner::kNone ? world_.foreign_to(pod) : CpuSet{};
  CpuSet own;
  for (const Container& container : pod.containers) {
    if (container.owns && container.runs && !container.exited) own |= container.cpus;
  }
  check_owned(
      {.id = pod.id, .pid = pod.pid, .own = own, .may = {}, .is_confined = is_confined(pod)});
  for (const int tid : kernel_.threads_of(pod.pid)) {
    const CpuSet on = kernel_.calls.effective(tid) & foreign;
    if (on.empty() || kernel_.allowed(tid).subset_of(foreign)) continue;
    report_failure("thread " + std::to_string(tid) + " of " + pod.id + " is on " + list(on) +
                   " in the end (I2)");
  }
}

/// What an exclusive container gets where its CPUs are its own, and nothing else need be there.
void Play::check_owned(const Place& place) {
  const bool may_leave = !place.is_confined && setup_.options.settings.housekeeping.kind ==
                                                   policy::plan::Housekeeping::Kind::kSharedPool;
  if (!may_leave) return;
  const CpuSet left = (place.own & kernel_.online()) - knowledge_.foreign_to(place.id);
  // Whose these are depends on how far the daemon had got when it was killed.
  if (knowledge_.perhaps_foreign_to(place.id).intersects(left)) return;
  const auto vcpus = static_cast<int>(kernel_.vcpus_of(place.pid).size());
  if (left == place.own && left.size() <= vcpus) return check_dedicated(place);
  if (!left.empty()) check_group(place, left);
}

/// I3 and I4: each of its CPUs carries a vCPU, and nothing else of its sandbox.
void Play::check_dedicated(const Place& place) {
  const auto vcpus = kernel_.vcpus_of(place.pid);
  std::map<int, int> served;
  for (const int tid : kernel_.threads_of(place.pid)) {
    const CpuSet mask = kernel_.calls.effective(tid);
    const bool is_vcpu = std::ranges::find(vcpus, tid) != vcpus.end();
    if (is_vcpu && mask.size() == 1 && mask.subset_of(place.own)) {
      ++served[mask.first()];
    } else if (mask.intersects(place.own)) {
      report_failure("thread " + std::to_string(tid) + " of " + place.id + " may run on " +
                     list(mask & place.own) + " beside a dedicated vCPU (I4)");
    }
  }
  for (const int cpu : place.own) {
    if (served[cpu] == 1) continue;
    report_failure("CPU " + std::to_string(cpu) + " of " + place.id + " has " +
                   std::to_string(served[cpu]) + " dedicated vCPUs (I3, I4)");
  }
}

/// I8: too few vCPUs, or not all of its CPUs are left to it. Those that are have as many vCPUs as
/// CPUs, where there are so many, and the rest of the sandbox is elsewhere.
void Play::check_group(const Place& place, const CpuSet& left) {
  const auto vcpus = kernel_.vcpus_of(place.pid);
  int within = 0;
  for (const int tid : kernel_.threads_of(place.pid)) {
    const CpuSet mask = kernel_.calls.effective(tid);
    if (std::ranges::find(vcpus, tid) != vcpus.end() && mask.subset_of(left)) {
      ++within;
    } else if (mask.intersects(left)) {
      report_failure("thread " + std::to_string(tid) + " of " + place.id + " is on " + list(mask) +
                     ", partly within " + list(left) + " (I8)");
    }
  }
  if (within >= std::min(static_cast<int>(vcpus.size()), left.size())) return;
  report_failure(std::to_string(within) + " vCPUs of " + place.id + " are within " + list(left) +
                 " (I8)");
}

/// I6: what has not changed keeps its CPUs when others come and go.
void Play::check_kept() {
  std::map<std::string, Kept> now;
  for (const auto& [id, pod] : knowledge_.pods()) {
    const CpuSet own = (knowledge_.owned_by(pod) & kernel_.online()) - knowledge_.foreign_to(id);
    if (!pod.vmm || pod.unsure || own.empty() || !is_held_to_plan(id)) continue;
    Kept& kept = now[id];
    kept.containers = pod.containers;
    kept.own = own;
    for (const int tid : kernel_.vcpus_of(pod.vmm->pid)) {
      const CpuSet mask = kernel_.calls.effective(tid);
      if (mask.subset_of(own)) kept.masks[tid] = mask;
    }
    const auto before = kept_.find(id);
    if (!is_calm_ || before == kept_.end() || before->second.masks.empty()) continue;
    const Kept& then = before->second;
    if (then.containers != kept.containers || then.own != own) continue;
    if (then.masks.size() == kept.masks.size() && then.masks != kept.masks) {
      report_failure("the vCPUs of " + id + " changed places while only others changed (I6)");
    }
  }
  kept_ = std::move(now);
  is_calm_ = true;
}

/// kubelet gave CPUs that one pod still uses to another.
bool Play::is_contested() {
  return std::ranges::any_of(knowledge_.pods(), [this](const auto& entry) {
    return knowledge_.owned_by(entry.second).intersects(knowledge_.foreign_to(entry.first));
  });
}

/// Of all threads but those of VMs that may be nowhere: until a daemon knows whose all their CPUs
/// are, it takes them off those that it knows to be others'.
std::map<int, CpuSet> Play::masks_of_placed() {
  auto masks = kernel_.masks();
  for (const auto& [id, pod] : knowledge_.pods()) {
    if (!is_trapped(id)) continue;
    for (const int tid : kernel_.threads_of(pod.vmm->pid)) masks.erase(tid);
  }
  return masks;
}

/// I7: the same facts and the same plan before give the same plan, also to the next daemon. Until
/// that has read of a contest, it makes room for its owner as if there were none.
void Play::check_restart() {
  const auto masks = masks_of_placed();
  kernel_.calls.writes.clear();
  restart({}, false);
  read_assigned();
  synchronize();
  find_libvirt();
  if (!setup_.has_nri) handle(world_.all());
  tick();
  if (masks_of_placed() != masks) report_failure("a restart changes masks (I7)");
  if (is_contested()) return;
  for (const auto& [tid, cpus] : kernel_.calls.writes) {
    if (!masks.contains(tid)) continue;
    return report_failure("a restart gives thread " + std::to_string(tid) + " the mask " +
                          list(cpus) + ", which is so (I7)");
  }
}

}  // namespace ka::model
