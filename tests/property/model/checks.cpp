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
  const CpuSet gained = kernel_.calls.effective(tid) - before_;
  if (gained.empty()) return;
  const std::string what = "thread " + std::to_string(tid) + " was let onto " + list(gained);
  if (!knowledge_.owners_are_known()) report_failure(what + ", and who owns that is not known");
  const Pod* pod = world_.by_pid(vmm_of(tid));
  const KnownPod* known = pod == nullptr ? nullptr : knowledge_.find(pod->id);
  if (known == nullptr || !known->vmm || known->vmm->pid != pod->pid) return;
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
  const auto ids = kernel_.line().node().sandbox_ids();
  for (const auto& [id, pod] : knowledge_.pods()) {
    if (pod.unsure || !pod.vmm || !kernel_.is_alive(pod.vmm->pid)) continue;
    if (std::ranges::find(ids, id) == ids.end()) report_failure("sandbox " + id + " is forgotten");
    check_pod(id, pod);
  }
}

/// Whoever was on a CPU that is another's by now has left it, where he could.
void Play::check_pod(const std::string& id, const KnownPod& pod) {
  if (dirty_.contains(id) || !knowledge_.owners_are_known()) return;
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
  read_kubelet();
  synchronize();
  if (!setup_.has_nri) handle(whole_truth());
  if (!knowledge_.owners_are_known()) {
    knowledge_.dismiss();
    kernel_.line().reconcile_all();
  }
  for (int i = 0; i < 2; ++i) {
    kernel_.clock.advance(std::chrono::seconds(60));
    tick();
  }
  check_quiescent();
}

void Play::check_quiescent() {
  if (!knowledge_.owners_are_known()) report_failure("it waits for nobody knows what");
  if (!kernel_.line().node().gate().may_widen()) report_failure("it widens nothing for ever");
  for (const auto& finding : kernel_.broken()) {
    report_failure("verify: " + finding.invariant + ": " + finding.sandbox + ": " + finding.text);
  }
  for (const Pod& pod : world_.pods()) {
    if (pod.pid != 0 && pod.runs && !pod.gone) check_alone(pod);
  }
  kernel_.calls.writes.clear();
  kernel_.line().reconcile_all();
  if (!kernel_.calls.writes.empty()) report_failure("the same plan is written twice (I6)");
  check_stable();
  check_restart();
}

/// I2 to I4 and I8 by the node as it is: an exclusive container's CPUs carry a vCPU each, and
/// nothing else of its sandbox where that may be elsewhere.
void Play::check_alone(const Pod& pod) {
  const CpuSet foreign = setup_.has_kubelet ? world_.foreign_to(pod) : CpuSet{};
  CpuSet own;
  for (const Container& container : pod.containers) {
    if (container.owns && container.runs && !container.exited) own |= container.cpus;
  }
  const auto vcpus = kernel_.vcpus_of(pod.pid);
  const bool has_enough = own.size() <= static_cast<int>(vcpus.size());
  const bool may_leave = !pod.confined && setup_.options.settings.housekeeping.kind ==
                                              policy::plan::Housekeeping::Kind::kSharedPool;
  std::map<int, int> served;
  for (const int tid : kernel_.threads_of(pod.pid)) {
    const CpuSet mask = kernel_.calls.effective(tid);
    const bool is_vcpu = std::ranges::find(vcpus, tid) != vcpus.end();
    if (is_vcpu && mask.size() == 1 && mask.subset_of(own)) {
      ++served[mask.first()];
    } else if (has_enough && may_leave && mask.intersects(own)) {
      report_failure("thread " + std::to_string(tid) + " of " + pod.id + " may run on " +
                     list(mask & own) + " beside a dedicated vCPU (I4)");
    }
    if (mask.intersects(foreign) && !kernel_.allowed(tid).subset_of(foreign)) {
      report_failure("thread " + std::to_string(tid) + " of " + pod.id + " is on " +
                     list(mask & foreign) + " in the end (I2)");
    }
  }
  if (!has_enough || !may_leave) return;
  for (const int cpu : own) {
    if (served[cpu] == 1) continue;
    report_failure("CPU " + std::to_string(cpu) + " of " + pod.id + " has " +
                   std::to_string(served[cpu]) + " dedicated vCPUs (I3, I4)");
  }
}

/// I6: what has not changed keeps its CPUs when others come and go.
void Play::check_stable() {
  std::map<std::string, std::map<int, CpuSet>> now;
  for (const Pod& pod : world_.pods()) {
    if (pod.pid == 0 || pod.owned().empty()) continue;
    for (const int tid : kernel_.vcpus_of(pod.pid)) {
      const CpuSet mask = kernel_.calls.effective(tid);
      if (mask.subset_of(pod.owned())) now[pod.id][tid] = mask;
    }
    const auto before = quiescent_.find(pod.id);
    if (!is_calm_ || grown_.contains(pod.id)) continue;
    if (before == quiescent_.end() || before->second.empty()) continue;
    if (before->second.size() == now[pod.id].size() && before->second != now[pod.id]) {
      report_failure("the vCPUs of " + pod.id + " changed places while only others changed (I6)");
    }
  }
  quiescent_ = std::move(now);
  grown_.clear();
  is_calm_ = true;
}

/// I7: the same facts and the same plan before give the same plan, also to the next daemon.
void Play::check_restart() {
  const auto masks = kernel_.masks();
  kernel_.calls.writes.clear();
  restart({}, false);
  read_kubelet();
  synchronize();
  if (!setup_.has_nri) handle(world_.all());
  tick();
  if (kernel_.masks() != masks) report_failure("a restart changes masks (I7)");
  if (!kernel_.calls.writes.empty()) {
    const auto& [tid, cpus] = kernel_.calls.writes.front();
    report_failure("a restart gives thread " + std::to_string(tid) + " the mask " + list(cpus) +
                   ", which is so (I7)");
  }
}

}  // namespace ka::model
