// SPDX-License-Identifier: Apache-2.0
#include "tests/property/model/kernel.hpp"

#include <algorithm>
#include <limits>

namespace ka::model {
namespace {

using policy::CpuSet;

constexpr int kForGood = std::numeric_limits<int>::max();

policy::Topology machine_with(const CpuSet& online, bool smt) {
  std::vector<policy::Cpu> cpus;
  for (int i = 0; i < kCpus; ++i) {
    const int half = 2 * i / kCpus;
    policy::Cpu cpu{i, smt ? i / 2 : i, half, half, half};
    cpu.online = online.contains(i);
    cpus.push_back(cpu);
  }
  return *policy::Topology::make(std::move(cpus));
}

}  // namespace

Kernel::Kernel(const Setup& setup)
    : LineScene(kCpus, setup.options), forgets_(setup.forgets), smt_(setup.smt), online_(machine) {
  topology = machine_with(online_, smt_);
  cpusets.make("pods", {});
  if (!setup.cgroup.empty()) real_ = std::make_unique<RealKernel>(setup.cgroup);
}

void Kernel::boot(Pod& pod) {
  pod.pid = next_pid_;
  next_pid_ += 100;
  boot_pod(pod.id, pod.pid, pod.vcpus);
  cpusets.make("pods/" + pod.id, {});
  node.fd(pod.pid, 9, "anon_inode:kvm-vm");
  calls.cgroup_of = [this](int tid) { return allowed(tid); };
  Vm vm{pod.id, {}, pod.vcpus, {}};
  for (int i = 0; i < pod.vcpus; ++i) vm.vcpus.push_back(pod.pid + 10 + i);
  vms_[pod.pid] = std::move(vm);
  update_allowed();
  if (!real_) return;
  real_->boot(pod.id, pod.pid);
  for (const int tid : threads_of(pod.pid)) {
    if (tid != pod.pid) real_->plug(pod.pid, tid);
  }
}

void Kernel::bury(int pid, int tid) {
  node.end_thread(pid, tid);
  calls.gone.insert(tid);
  calls.own.erase(tid);
  calls.get_faults[tid] = {ESRCH, kForGood};
  calls.set_faults[tid] = {ESRCH, kForGood};
  faulty_.erase(tid);
}

void Kernel::end(const Pod& pod, bool reused) {
  const int pid = pod.pid;
  if (hidden_.contains(pid)) mend();
  for (const int tid : threads_of(pid)) bury(pid, tid);
  node.end_process(pid);
  std::filesystem::remove_all(node.debugfs() / "kvm" / (std::to_string(pid) + "-9"));
  vms_.erase(pid);
  if (real_) real_->end(pid);
  if (!reused) return;
  node.process(pid, 1, "sleep", "/usr/bin/sleep");
  node.thread(pid, pid, "sleep", 1, 900000 + pid);
  node.in_cgroup(pid, "pods/" + pod.id, policy::format_list(online_));
  calls.gone.erase(pid);
  calls.get_faults.erase(pid);
  calls.set_faults.erase(pid);
  strangers_.insert(pid);
}

/// Its threads have a hundred numbers.
bool Kernel::may_plug(int pid) const {
  const Vm& vm = vms_.at(pid);
  return vm.plugged < 80 && vm.vcpus.size() < 6 && !hidden_.contains(pid);
}

bool Kernel::may_unplug(int pid) const {
  return vms_.at(pid).vcpus.size() > 1 && !hidden_.contains(pid);
}

void Kernel::plug_one(const Pod& pod) {
  Vm& vm = vms_.at(pod.pid);
  const int index = static_cast<int>(vm.vcpus.size());
  const int tid = pod.pid + 10 + vm.plugged++;
  node.thread(pod.pid, tid, "CPU " + std::to_string(index) + "/KVM");
  node.kvm_vcpu(std::to_string(pod.pid) + "-9", index, tid);
  if (const auto own = calls.own.find(pod.pid); own != calls.own.end())
    calls.own[tid] = own->second;
  vm.vcpus.push_back(tid);
  if (real_) real_->plug(pod.pid, tid);
}

void Kernel::unplug_one(const Pod& pod) {
  Vm& vm = vms_.at(pod.pid);
  const auto index = std::to_string(vm.vcpus.size() - 1);
  std::filesystem::remove_all(node.debugfs() / "kvm" / (std::to_string(pod.pid) + "-9") /
                              ("vcpu" + index));
  bury(pod.pid, vm.vcpus.back());
  if (real_) real_->unplug(pod.pid, vm.vcpus.back());
  vm.vcpus.pop_back();
}

/// A cpuset with tasks cannot be emptied (validate_change(), kernel/cgroup/cpuset.c).
bool Kernel::confine(const Pod& pod) {
  if (!pod.confined || !is_alive(pod.pid) || pod.cpus().empty()) return false;
  cpusets.make("pods/" + pod.id, pod.cpus());
  if (real_) real_->confine(pod.id, pod.cpus());
  update_allowed();
  return true;
}

void Kernel::mirror_cgroup(const std::string& pod) {
  if (real_) real_->confine(pod, cgroup(pod));
  update_allowed();
}

/// What the cgroups allow now, and what the kernel does where that is not what it was.
void Kernel::update_allowed() {
  for (auto& [pid, vm] : vms_) {
    CpuSet allowed = cpusets.effective("pods/" + vm.pod);
    if (allowed == vm.allowed) continue;
    const bool is_new = vm.allowed.empty();
    vm.allowed = std::move(allowed);
    if (!forgets_ || is_new) continue;
    for (const int tid : threads_of(pid)) calls.own.erase(tid);
  }
}

void Kernel::set_online(const CpuSet& online) {
  online_ = online;
  topology = machine_with(online, smt_);
  cpusets.make("", online);
  update_allowed();
  if (real_) real_->set_online(online);
}

void Kernel::set_mask(int tid, const CpuSet& mask) {
  if (!mask.intersects(calls.allowed(tid))) return;
  calls.own[tid] = mask;
  mirror_write(tid);
}

void Kernel::mirror_write(int tid) {
  if (!real_ || !is_alive(vmm_of(tid))) return;
  const int number = real_->set_mask(vmm_of(tid), tid, calls.own.at(tid));
  if (number == 0) return;
  refused_ = "thread " + std::to_string(tid) + " cannot get " +
             policy::format_list(calls.own.at(tid)) + ": error " + std::to_string(number);
}

std::string Kernel::difference() const {
  if (!real_) return {};
  return refused_.empty() ? real_->difference(masks()) : refused_;
}

void Kernel::fail_calls(int tid, int number) {
  if (number == EPERM) {
    calls.get_faults[tid] = {number, kForGood};
  } else {
    calls.set_faults[tid] = {number, number == EINTR ? 2 : kForGood};
  }
  faulty_.insert(tid);
}

/// A link that leads to itself: ELOOP, which says nothing of whether the process is there.
void Kernel::hide(int pid) {
  if (!hidden_.insert(pid).second) return;
  std::filesystem::rename(folder(pid), folder(pid).string() + ".hidden");
  std::filesystem::create_symlink(folder(pid), folder(pid));
}

void Kernel::mend() {
  for (const int pid : std::exchange(hidden_, {})) {
    std::filesystem::remove(folder(pid));
    std::filesystem::rename(folder(pid).string() + ".hidden", folder(pid));
  }
  for (const int tid : std::exchange(faulty_, {})) {
    calls.get_faults.erase(tid);
    calls.set_faults.erase(tid);
  }
}

std::vector<int> Kernel::threads_of(int pid) const {
  std::vector<int> tids = {pid, pid + 1};
  const auto& vcpus = vms_.at(pid).vcpus;
  tids.insert(tids.end(), vcpus.begin(), vcpus.end());
  return tids;
}

CpuSet Kernel::allowed(int tid) const {
  const auto vm = vms_.find(vmm_of(tid));
  return vm == vms_.end() ? online_ : vm->second.allowed;
}

std::map<int, CpuSet> Kernel::masks() const {
  std::map<int, CpuSet> masks;
  for (const auto& [pid, vm] : vms_) {
    for (const int tid : threads_of(pid)) masks[tid] = calls.effective(tid);
  }
  return masks;
}

}  // namespace ka::model
