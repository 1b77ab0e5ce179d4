// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <set>

#include "base/files.hpp"
#include "vmm/backend.hpp"
#include "vmm/kvm/debugfs.hpp"
#include "vmm/procfs/thread_names.hpp"
#include "vmm/threads.hpp"

namespace ka::vmm {
namespace {

using policy::Role;

std::set<int> tids_of(const SeenProcess& process) {
  std::set<int> tids;
  for (const SeenThread& thread : process.threads) tids.insert(thread.key.tid);
  return tids;
}

Claim vcpu_claim(int tid, int apic_id) {
  return {.tid = tid, .role = Role::kVcpu, .index = {}, .apic_id = apic_id, .iothread = {}};
}

/// A vCPU whose thread is dead is one that QEMU unplugged and keeps.
Claims from_debugfs(const ProbeContext& context) {
  const std::set<int> tids = tids_of(context.vmm);
  const auto vcpus = read_kvm_vcpus(
      context.roots.debugfs, [&tids](int tid) { return tids.contains(tid); }, context.trouble);
  Claims claims;
  for (const KvmVcpu& vcpu : vcpus) {
    if (tids.contains(vcpu.tid)) claims.list.push_back(vcpu_claim(vcpu.tid, vcpu.id));
    if (tids.contains(vcpu.tid) || vcpu.tid == 0) ++claims.vcpus_there;
  }
  return claims;
}

Claims from_monitor(const ProbeContext& context) {
  Claims claims;
  if (context.monitor == nullptr) return claims;
  claims.source = context.monitor->source;
  claims.vcpus_there = context.monitor->vcpus.size();
  for (const MonitorFacts::Vcpu& vcpu : context.monitor->vcpus) {
    if (vcpu.tid == 0) continue;
    claims.list.push_back({.tid = vcpu.tid,
                           .role = Role::kVcpu,
                           .index = vcpu.facts.index,
                           .apic_id = vcpu.facts.apic_id,
                           .iothread = {}});
  }
  for (const MonitorFacts::Iothread& iothread : context.monitor->iothreads) {
    claims.list.push_back({.tid = iothread.tid,
                           .role = Role::kIothread,
                           .index = {},
                           .apic_id = {},
                           .iothread = iothread.id});
  }
  return claims;
}

/// How many vCPUs are open; a descriptor may be there twice.
std::size_t count_vcpus(const OpenFds& fds) {
  std::set<int> apic_ids;
  for (const auto& [fd, id] : fds.kvm_vcpus) apic_ids.insert(id);
  return apic_ids.size();
}

/// Threads that the kernel makes keep the registers of the thread that asked for them: they look as
/// if they were in that thread's KVM_RUN for ever.
Claims from_vcpu_fds(const ProbeContext& context) {
  Claims claims;
  if (context.fds.kvm_vcpus.empty()) return claims;
  claims.vcpus_there = count_vcpus(context.fds);
  const std::filesystem::path tasks = context.roots.proc / std::to_string(context.vmm.pid) / "task";
  for (const SeenThread& thread : context.vmm.threads) {
    if (is_made_by_kernel(thread.comm)) continue;
    const auto line = base::read_file(tasks / std::to_string(thread.key.tid) / "syscall");
    context.trouble.record(line);
    const auto fd = line ? kvm_run_fd(*line) : std::nullopt;
    const auto vcpu = fd ? context.fds.kvm_vcpus.find(*fd) : context.fds.kvm_vcpus.end();
    if (vcpu == context.fds.kvm_vcpus.end()) continue;
    claims.list.push_back(vcpu_claim(thread.key.tid, vcpu->second));
  }
  return claims;
}

Claims from_names(const ProbeContext& context) {
  Claims claims;
  for (const SeenThread& thread : context.vmm.threads) {
    const auto meaning = read_thread_name(thread.comm);
    if (!meaning) continue;
    Claim claim{.tid = thread.key.tid,
                .role = meaning->role,
                .index = {},
                .apic_id = {},
                .iothread = meaning->iothread};
    if (meaning->role == Role::kVcpu) claim.index = meaning->number;
    claims.list.push_back(std::move(claim));
  }
  return claims;
}

constexpr std::array kBackends = {
    Backend{"kvm-debugfs", from_debugfs},  // the thread of each APIC id
    Backend{"monitor", from_monitor},      // what QMP or Cloud Hypervisor's API reported
    Backend{"kvm-fd", from_vcpu_fds},      // open vCPUs, and which thread sits in KVM_RUN on one
    Backend{"thread-names", from_names},   // names that VMMs and the kernel give to threads
};

}  // namespace

std::span<const Backend> backend_table() { return kBackends; }

}  // namespace ka::vmm
