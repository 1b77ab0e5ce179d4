// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "vmm/backend.hpp"
#include "vmm/kin.hpp"
#include "vmm/members.hpp"
#include "vmm/merge.hpp"
#include "vmm/procfs/relatives.hpp"
#include "vmm/procfs/thread_names.hpp"
#include "vmm/threads.hpp"
#include "vmm/unknown.hpp"

namespace ka::vmm {
namespace {

using policy::Role;

/// What a scan found before anything was named: while it is unchanged, so is the answer.
struct Observation {
  SeenProcess vmm;
  std::vector<SeenProcess> beside;  ///< by pid
  Processes members;                ///< of these, those that count by their cgroup
  std::vector<std::string> foreign;
  std::optional<MonitorFacts> monitor;

  bool operator==(const Observation&) const = default;
};

/// Merges what all backends claim, and sets how many vCPUs there are by the most trustworthy one
/// that can say.
Merge merge_claims(const ProbeContext& context, std::size_t& vcpus_there) {
  Merge merge(context.vmm.threads);
  for (const Backend& backend : backend_table()) {
    Claims claims = backend.read(context);
    if (claims.source.empty()) claims.source = backend.name;
    if (vcpus_there == 0) vcpus_there = claims.vcpus_there;
    merge.add(claims);
  }
  merge.complete_indices();
  return merge;
}

policy::VcpuFacts vcpu_facts(const Claim& claim, const MonitorFacts* monitor) {
  policy::VcpuFacts facts{.index = *claim.index, .apic_id = claim.apic_id, .core = *claim.index};
  if (monitor == nullptr) return facts;
  for (const MonitorFacts::Vcpu& reported : monitor->vcpus) {
    if ((reported.tid != claim.tid && reported.tid != 0) || reported.facts.index != facts.index)
      continue;
    facts = reported.facts;
    facts.apic_id = claim.apic_id;
  }
  return facts;
}

bool is_in_shim(const ProbeContext& context) {
  return role_of_process(context.roots.proc, context.vmm, context.vmm.threads) == Role::kShim;
}

bool has_vm(const ProbeContext& context, const Merge& merge) {
  return context.fds.kvm_vms > 0 ||
         std::ranges::any_of(context.vmm.threads, [&](const SeenThread& seen) {
           return merge.find(seen.key.tid) != nullptr || belongs_to_vm(seen.comm);
         });
}

/// The claim on a thread. A worker that io_uring created for an iothread counts as the iothread.
const Claim* claim_for(const SeenThread& seen, const Merge& merge) {
  if (const Claim* claim = merge.find(seen.key.tid)) return claim;
  const auto submitter = io_uring_submitter(seen.comm);
  const Claim* claim = submitter ? merge.find(*submitter) : nullptr;
  return claim != nullptr && claim->role == Role::kIothread ? claim : nullptr;
}

void name_vmm_threads(VmmThreads& result, const ProbeContext& context) {
  std::size_t vcpus_there = 0;
  const Merge merge = merge_claims(context, vcpus_there);
  // A shim that has no VM stands for the one that it will start. Dragonball is a part of the shim,
  // whose own threads are none of the VM's.
  const bool in_shim = is_in_shim(context);
  const bool shared = in_shim && has_vm(context, merge);
  const Role other = in_shim && !shared ? Role::kShim : Role::kEmulator;
  for (const SeenThread& seen : context.vmm.threads) {
    const Claim* claim = claim_for(seen, merge);
    if (shared && claim == nullptr && !belongs_to_vm(seen.comm)) continue;
    policy::ThreadFacts thread{
        .key = seen.key, .role = other, .name = seen.comm, .movable = seen.movable};
    if (claim != nullptr) {
      thread.role = claim->role;
      if (!claim->iothread.empty()) thread.name = claim->iothread;
      if (claim->role == Role::kVcpu) {
        thread.vcpu_index = *claim->index;
        result.vcpus.push_back(vcpu_facts(*claim, context.monitor));
      }
    }
    result.threads.push_back(std::move(thread));
  }
  std::ranges::sort(result.vcpus, {}, &policy::VcpuFacts::index);
  result.complete = result.vcpus.size() >= vcpus_there;
  result.vcpu_source = merge.vcpu_source();
  result.conflicts = merge.conflicts();
}

void name_beside(VmmThreads& result, const SeenProcess& process, Role role) {
  for (const SeenThread& seen : process.threads) {
    const int vcpu = role == Role::kPit ? 0 : -1;
    result.threads.push_back({.key = seen.key,
                              .role = role,
                              .vcpu_index = vcpu,
                              .name = seen.comm,
                              .movable = seen.movable});
  }
}

/// QEMU starts the thread of a plugged vCPU before KVM has the vCPU (accel/kvm/kvm-accel-ops.c,
/// kvm_vcpu_thread_fn): a new, unclaimed thread may be one.
bool has_unclaimed_newcomer(const SeenProcess& before, const VmmThreads& answer) {
  return std::ranges::any_of(answer.threads, [&](const policy::ThreadFacts& thread) {
    return thread.role == Role::kEmulator && thread.key.pid == before.pid &&
           std::ranges::find(before.threads, thread.key, &SeenThread::key) == before.threads.end();
  });
}

bool is_virtiofsd(const Roots& roots, const SeenProcess& process) {
  return role_of_process(roots.proc, process, {}) == Role::kVirtiofsd;
}

}  // namespace

struct Discovery::State {
  const Roots& roots;
  Target target;

  std::optional<Observation> last = {};
  VmmThreads answer = {};
  Kin kin = {};
  Processes known = {};     ///< members as last seen
  bool named = false;       ///< `answer` is one
  bool is_refused = false;  ///< a privilege for reading is missing

  base::Result<SeenProcess> read_vmm(base::ThreadStats& stats, base::Trouble& trouble) const;
  void read_beside(Observation& now, const NeighbourOf& neighbour_of, base::ThreadStats& stats,
                   base::Trouble& trouble) const;
  VmmThreads read_anew(Observation& now, const NeighbourOf& neighbour_of, base::ThreadStats& stats,
                       base::Trouble& trouble);
  const base::Error* blindness(const base::Trouble& trouble) const;
  VmmThreads name_all(const Observation& seen, const OpenFds& fds, base::Trouble& trouble) const;
  VmmThreads kept(const Observation& now, const base::Error& why) const;
};

base::Result<SeenProcess> Discovery::State::read_vmm(base::ThreadStats& stats,
                                                     base::Trouble& trouble) const {
  auto vmm = read_process(stats, target.vmm.pid);
  if (!vmm) return vmm;
  if (vmm->start_time != target.vmm.start_time) {
    return base::fail(base::ErrorCode::kGone, "process " + std::to_string(target.vmm.pid) +
                                                  " has been replaced by another");
  }
  if (!vmm->unread.empty()) trouble.record_unread(vmm->why_unread);
  return vmm;
}

/// virtiofsd serves one VM, whatever started it. Another back-end may be the node's (SPDK, Open
/// vSwitch), which places it itself: it counts only inside the sandbox's cgroup.
void Discovery::State::read_beside(Observation& now, const NeighbourOf& neighbour_of,
                                   base::ThreadStats& stats, base::Trouble& trouble) const {
  Members members({roots, target, kin, known, neighbour_of, trouble});
  std::set<int> pids = kin.pids();
  pids.insert(members.pids().begin(), members.pids().end());
  now.beside.clear();
  for (const int pid : pids) {
    if (pid == target.vmm.pid) continue;
    auto process = read_process(stats, pid);
    if (!process) {
      trouble.record(process.error());
      continue;
    }
    if (!process->unread.empty()) trouble.record_unread(process->why_unread);
    const bool counts = kin.has(process->id()) || members.has(*process) ||
                        (kin.serves(process->id()) && is_virtiofsd(roots, *process));
    if (counts) now.beside.push_back(std::move(*process));
  }
  now.members = members.counted();
  now.foreign = members.foreign();
}

/// Why what was read cannot be trusted; null if it can. What was refused from the beginning, and
/// what is beyond a limit, is done without, and said.
const base::Error* Discovery::State::blindness(const base::Trouble& trouble) const {
  if (trouble.passing()) return &*trouble.passing();
  const std::optional<base::Error>& refused = trouble.refused();
  const bool is_new = refused && refused->code == base::ErrorCode::kPermission && !is_refused;
  return is_new && named ? &*refused : nullptr;
}

/// The last answer without threads that have ended, while it cannot be seen what else has changed.
VmmThreads Discovery::State::kept(const Observation& now, const base::Error& why) const {
  VmmThreads result = answer;
  const auto has = [](const SeenProcess& process, const policy::ThreadKey& key) {
    return std::ranges::find(process.threads, key, &SeenThread::key) != process.threads.end();
  };
  std::erase_if(result.threads, [&](const policy::ThreadFacts& thread) {
    return thread.key.pid == now.vmm.pid && !has(now.vmm, thread.key) &&
           std::ranges::find(now.vmm.unread, thread.key.tid) == now.vmm.unread.end();
  });
  std::erase_if(result.vcpus, [&](const policy::VcpuFacts& vcpu) {
    return std::ranges::none_of(result.threads, [&](const policy::ThreadFacts& thread) {
      return thread.role == Role::kVcpu && thread.vcpu_index == vcpu.index;
    });
  });
  for (const policy::ThreadFacts& thread : result.threads) {
    const bool is_read = has(now.vmm, thread.key) ||
                         std::ranges::any_of(now.beside, [&](const SeenProcess& process) {
                           return has(process, thread.key);
                         });
    if (!is_read) result.unread.push_back(thread.key);
  }
  result.trouble = why.message;
  result.complete = false;
  return result;
}

VmmThreads Discovery::State::name_all(const Observation& seen, const OpenFds& fds,
                                      base::Trouble& trouble) const {
  VmmThreads result{.vmm_pid = target.vmm.pid};
  const MonitorFacts* monitor = seen.monitor ? &*seen.monitor : nullptr;
  name_vmm_threads(
      result,
      {.roots = roots, .vmm = seen.vmm, .fds = fds, .monitor = monitor, .trouble = trouble});
  for (const SeenProcess& process : seen.beside) {
    Role role = role_of_process(roots.proc, process, seen.vmm.threads);
    if (role == Role::kHelper && kin.serves(process.id())) role = Role::kVhost;
    name_beside(result, process, role);
  }
  if (kin.is_incomplete()) result.complete = false;
  result.threads.shrink_to_fit();  // kept as long as the sandbox lives
  std::ranges::sort(result.threads, {}, &policy::ThreadFacts::key);
  result.unknown = describe_unknown(result, seen.vmm.comm);
  result.foreign = seen.foreign;
  return result;
}

/// Finds again who belongs to the VMM, and names every thread.
VmmThreads Discovery::State::read_anew(Observation& now, const NeighbourOf& neighbour_of,
                                       base::ThreadStats& stats, base::Trouble& trouble) {
  const auto read = read_fds(roots.proc, target.vmm.pid);
  trouble.record(read);
  const OpenFds fds = read.value_or(OpenFds{});
  kin.find(roots, target, now.vmm, fds, now.monitor.has_value(), trouble);
  read_beside(now, neighbour_of, stats, trouble);
  return name_all(now, fds, trouble);
}

Discovery::Discovery(const Roots& roots, Target target)
    : state_(std::make_unique<State>(roots, std::move(target))) {}

Discovery::Discovery(Discovery&&) noexcept = default;
Discovery& Discovery::operator=(Discovery&&) noexcept = default;
Discovery::~Discovery() = default;

const Target& Discovery::target() const { return state_->target; }

void Discovery::forget() {
  state_->last.reset();
  state_->kin.renew();
}

base::Result<VmmThreads> Discovery::observe(const MonitorFacts* monitor, base::ThreadStats& stats,
                                            const NeighbourOf& neighbour_of) {
  State& state = *state_;
  base::Trouble trouble;
  auto vmm = state.read_vmm(stats, trouble);
  if (!vmm) return unexpected(std::move(vmm.error()));
  Observation now{
      .vmm = std::move(*vmm), .beside = {}, .members = {}, .foreign = {}, .monitor = {}};
  if (is_shim(state.roots.proc, now.vmm.pid, now.vmm.comm)) {
    state.kin.find_started(state.roots, now.vmm, trouble);
  }
  state.read_beside(now, neighbour_of, stats, trouble);
  if (monitor != nullptr) now.monitor = *monitor;
  const bool was_read = state.answer.complete && !state.is_refused;
  if (trouble.none() && was_read && state.last == now) return state.answer;

  const Kin before = state.kin;
  VmmThreads answer = state.read_anew(now, neighbour_of, stats, trouble);
  if (const base::Error* why = state.blindness(trouble)) {
    state.kin = before;
    if (!state.named) return unexpected(*why);
    return state.kept(now, *why);
  }
  if (state.last && has_unclaimed_newcomer(state.last->vmm, answer)) answer.complete = false;
  state.named = true;
  state.is_refused = trouble.refused().has_value();
  if (state.is_refused) answer.trouble = trouble.refused()->message;
  state.answer = std::move(answer);
  state.known = now.members;
  state.last = std::move(now);
  return state.answer;
}

}  // namespace ka::vmm
