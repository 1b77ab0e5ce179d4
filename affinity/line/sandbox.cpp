// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/sandbox.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "affinity/host/cgroup_names.hpp"

namespace ka::line {
namespace {

using host::CgroupFacts;
using policy::CpuSet;
using policy::Role;
using policy::ledger::PodRecord;

/// Number of hard links of /proc/<pid>/task: threads + 2 (proc_task_getattr in fs/proc/base.c).
std::size_t tasks_of(const base::ProcFs& proc, int pid) {
  struct stat status{};
  const std::string path = proc.root().native() + '/' + std::to_string(pid) + "/task";
  return ::stat(path.c_str(), &status) == 0 ? status.st_nlink : 0;
}

base::Result<CgroupFacts> read_vmm_cgroup(const ProbeContext& context, const PodRecord& pod) {
  if (context.cgroups_unread) return unexpected(*context.cgroups_unread);
  return host::read_vmm_cgroup(context.cgroups, {pod.vmm ? pod.vmm->pid : 0, !pod.domain.empty()});
}

/// The sandbox's own cgroup; empty: it has none.
std::string own_cgroup(const PodRecord& pod, const std::optional<host::Cgroups>& cgroups,
                       const CgroupFacts& of_vmm) {
  if (!cgroups) return {};
  return host::own_cgroup(pod.id, pod.cgroup, of_vmm.directory, cgroups->mount()).string();
}

bool has_thread(const vmm::VmmThreads& seen, int tid) {
  return std::ranges::any_of(seen.threads,
                             [tid](const auto& thread) { return thread.key.tid == tid; });
}

/// Why the cgroup whose cpuset is in force for the VMM cannot be managed; empty: it can.
std::string why_not_managed(const PodRecord& pod, const std::optional<host::Cgroups>& cgroups,
                            const CgroupFacts& of_vmm, const std::string& own) {
  if (!cgroups || cgroups->version() != 2) return "only cgroup v2 can be managed";
  if (!pod.domain.empty()) return "libvirt manages its cgroup";
  if (own.empty()) return "it has no cgroup of its own";
  if (pod.source == policy::ledger::Source::kCgroup) {
    return "its cpuset is the only source for its containers";
  }
  const bool inside = host::is_inside(of_vmm.cpuset_directory, own);
  return inside ? "" : "its cgroup has no cpuset of its own";
}

}  // namespace

// --- observe

base::Result<void> Sandbox::observe_afresh(const ProbeContext& context, const PodRecord& pod,
                                           CgroupMode mode) {
  if (discovery_) discovery_->forget();
  return observe(context, pod, mode);
}

base::Result<void> Sandbox::observe(const ProbeContext& context, const PodRecord& pod,
                                    CgroupMode mode) {
  auto seen = observe_all(context, pod, mode);
  if (!seen) {
    trouble_ = seen.error().message;
    for (ThreadView& thread : threads_) thread.seen = false;
  }
  return seen;
}

base::Result<void> Sandbox::observe_all(const ProbeContext& context, const PodRecord& pod,
                                        CgroupMode mode) {
  const auto of_vmm = read_vmm_cgroup(context, pod);
  if (!of_vmm) return unexpected(of_vmm.error());
  const std::string own = own_cgroup(pod, context.cgroups, *of_vmm);
  masks_.set_narrowed_by_proxy(pod.original_cpus);
  auto found = discover(
      context, {pod.vmm.value_or(policy::ProcessId{}), own, pod.proxy, !pod.cgroup.empty()});
  if (!found) return found;
  keeper_.observe(context.cgroups, of_vmm->cpuset_directory.native(), mode,
                  mode == CgroupMode::kObey ? std::string()
                                            : why_not_managed(pod, context.cgroups, *of_vmm, own));
  read_masks(context, pod, *of_vmm);
  remember_originals();
  const auto interrupts = interrupts_.observe(context.roots, seen_.vmm_pid);
  if (!interrupts) record_trouble(interrupts.error());
  classes_.observe(context.calls, context.stats, seen_.threads, own,
                   policy::requests_classes(pod.annotations));
  return {};
}

base::Result<void> Sandbox::discover(const ProbeContext& context, const vmm::Target& target) {
  if (!discovery_ || discovery_->target() != target) discovery_.emplace(context.roots, target);
  const auto vm_of = [&](const policy::ProcessId& process) {
    const PodRecord* holder = context.ledger.find_holder(process, id_);
    return holder == nullptr ? std::string() : holder->id;
  };
  auto seen = discovery_->observe(monitor_ ? &*monitor_ : nullptr, context.stats, vm_of);
  if (seen && forget_ended(*seen)) seen = discovery_->observe(&*monitor_, context.stats, vm_of);
  if (!seen) return unexpected(std::move(seen.error()));
  seen_ = std::move(*seen);
  trouble_ = seen_.trouble;
  return {};
}

/// Drops what the monitor reported of threads that have ended since: it reported an unplugged vCPU
/// before it was unplugged, which is no contradiction. True when there was any.
bool Sandbox::forget_ended(const vmm::VmmThreads& now) {
  if (!monitor_) return false;
  const auto ended = [&](const auto& reported) {
    return has_thread(seen_, reported.tid) && !has_thread(now, reported.tid);
  };
  return std::erase_if(monitor_->vcpus, ended) + std::erase_if(monitor_->iothreads, ended) > 0;
}

void Sandbox::observe_masks(const ProbeContext& context, const PodRecord& pod) {
  const auto of_vmm = read_vmm_cgroup(context, pod);
  if (!of_vmm) return record_trouble(of_vmm.error());
  read_masks(context, pod, *of_vmm);
  assign();
}

void Sandbox::count_tasks(const base::ProcFs& proc) {
  task_counts_ = {{seen_.vmm_pid, tasks_of(proc, seen_.vmm_pid)}};
  for (const auto& thread : seen_.threads) {
    const int pid = thread.key.pid;
    if (!task_counts_.contains(pid)) task_counts_[pid] = tasks_of(proc, pid);
  }
}

/// What the cgroups allow, and the masks. Threads that have ended since they were listed are left
/// out.
void Sandbox::read_masks(const ProbeContext& context, const PodRecord& pod,
                         const CgroupFacts& of_vmm) {
  count_tasks(context.proc);
  const host::VmmProcess vmm{seen_.vmm_pid, !pod.domain.empty()};
  const auto read = cgroups_.read(context.cgroups, vmm, of_vmm, seen_.threads);
  if (!read) record_trouble(read.error());
  const auto before = std::exchange(threads_, {});
  threads_.reserve(seen_.threads.size());
  for (const auto& facts : seen_.threads) {
    auto actual = read_mask(context.calls, facts.key);
    if (is_gone(actual)) continue;
    threads_.push_back(read_thread(facts, std::move(actual), before));
  }
}

/// One whose mask cannot be read keeps the one that was read last.
ThreadView Sandbox::read_thread(const policy::ThreadFacts& facts, base::Result<CpuSet> actual,
                                const std::vector<ThreadView>& before) {
  ThreadView view;
  view.facts = facts;
  if (actual) {
    view.actual = std::move(*actual);
    return view;
  }
  view.seen = false;
  record_trouble(actual.error());
  const auto known = std::ranges::find(before, facts.key,
                                       [](const ThreadView& thread) { return thread.facts.key; });
  if (known != before.end()) view.actual = known->actual;
  return view;
}

/// Of a thread that was read in this pass: another one's would be of no use. "No such process" is
/// not believed of a thread that the kernel still knows.
base::Result<CpuSet> Sandbox::read_mask(host::AffinityCalls& calls,
                                        const policy::ThreadKey& key) const {
  const bool was_read = std::ranges::find(seen_.unread, key) == seen_.unread.end();
  if (!was_read) return base::fail(base::ErrorCode::kTransient, seen_.trouble);
  auto mask = calls.get(key.tid);
  const bool is_said_gone = is_gone(mask);
  if (!is_said_gone || !calls.exists(key.pid, key.tid)) return mask;
  return base::fail(base::ErrorCode::kTransient, mask.error().message);
}

void Sandbox::remember_originals() {
  for (const ThreadView& thread : threads_) {
    masks_.remember_original(thread, allowed_for(thread.facts));
  }
  masks_.keep_originals([this](int pid) { return task_counts_.contains(pid); });
}

/// Something cannot be seen now: what is known of it stays.
void Sandbox::record_trouble(const base::Error& error) {
  if (trouble_.empty()) trouble_ = error.message;
}

void Sandbox::remember() {
  interrupts_.remember();
  classes_.remember();
  masks_.remember(threads_);
}

bool Sandbox::is_unchanged(const ProbeContext& context, bool node_has_vfio,
                           CgroupKeeper::Time now) const {
  if (!trouble_.empty() || !seen_.complete || !keeper_.is_unchanged(context.cgroups, now) ||
      !interrupts_.is_unchanged(context.roots, node_has_vfio, seen_.vmm_pid, now) ||
      !classes_.is_unchanged(context.calls, now)) {
    return false;
  }
  for (const auto& [pid, count] : task_counts_) {
    if (tasks_of(context.proc, pid) != count) return false;
  }
  if (!cgroups_.are_as_read(context.cgroups, context.online)) return false;
  return masks_.are_as_left(threads_, context.calls);
}

bool Sandbox::uses(const CpuSet& cpus) const {
  return !cpus.empty() && std::ranges::any_of(threads_, [&](const ThreadView& thread) {
    return thread.actual.intersects(cpus);
  });
}

std::vector<ChangedMask> Sandbox::changed_masks(host::AffinityCalls& calls) const {
  return masks_.changed(threads_, calls);
}

// --- what the cgroups allow

bool Sandbox::is_kept(const policy::ThreadFacts& thread) const {
  return cgroups_.is_bound_by(thread.key.pid, keeper_.directory());
}

const CpuSet& Sandbox::allowed_for(const policy::ThreadFacts& thread) const {
  static const CpuSet kUnknown;
  if (keeper_.only_watches() && is_kept(thread)) return keeper_.cpuset().bound;
  if (thread.role == Role::kVcpu && cgroups_.cpus()) return *cgroups_.cpus();
  const CpuSet* allowed = cgroups_.allowed(thread.key.pid);
  return allowed == nullptr ? kUnknown : *allowed;
}

std::optional<CpuSet> Sandbox::reachable_cpus() const {
  return keeper_.in_charge() ? keeper_.cpuset().bound : cgroups_.cpus();
}

/// What the cgroup of a thread beside the vCPUs allows, or can be made to; null: not known.
const CpuSet* Sandbox::reachable_for(const policy::ThreadFacts& thread) const {
  if (keeper_.in_charge() && is_kept(thread)) return &keeper_.cpuset().bound;
  return cgroups_.allowed(thread.key.pid);
}

/// Of roles whose threads are elsewhere than the vCPUs. A role whose threads are in several cgroups
/// is planned for what they have in common; what that is not, is clipped thread by thread.
std::map<Role, CpuSet> Sandbox::cgroups_by_role() const {
  std::map<Role, CpuSet> cgroups;
  for (const auto& thread : seen_.threads) {
    const CpuSet* allowed = reachable_for(thread);
    if (policy::goes_with_vcpu(thread.role) || allowed == nullptr) continue;
    const auto [entry, added] = cgroups.try_emplace(thread.role, *allowed);
    if (!added && entry->second.intersects(*allowed)) entry->second &= *allowed;
  }
  const std::optional<CpuSet> of_vcpus = reachable_cpus();
  std::erase_if(cgroups, [&](const auto& entry) { return of_vcpus && entry.second == *of_vcpus; });
  return cgroups;
}

// --- plan

policy::SandboxFacts Sandbox::facts(const PodRecord& pod) const {
  policy::SandboxFacts facts = policy::ledger::to_sandbox_facts(pod);
  facts.cgroup_cpus = reachable_cpus();
  facts.cgroup_writable = keeper_.in_charge();
  facts.vcpus = seen_.vcpus;
  facts.devices = interrupts_.devices();
  facts.cgroup_by_role = cgroups_by_role();
  for (const auto& thread : seen_.threads) {
    facts.roles.insert(thread.role);
    if (thread.role == Role::kIothread) facts.iothreads.push_back(thread.name);
  }
  std::ranges::sort(facts.iothreads);
  const auto repeated = std::ranges::unique(facts.iothreads);
  facts.iothreads.erase(repeated.begin(), repeated.end());
  return facts;
}

void Sandbox::set_plan(policy::plan::SandboxPlan plan, CpuSet doubted) {
  plan_ = std::move(plan);
  doubted_ = std::move(doubted);
  assign();
}

/// Gives each thread and interrupt its set of the plan.
void Sandbox::assign() {
  interrupts_.set_plan(*plan_, doubted_);
  for (ThreadView& thread : threads_) {
    const CpuSet* wanted = plan_->cpus_for(thread.facts);
    thread.wanted = wanted == nullptr
                        ? CpuSet{}
                        : policy::plan::without_doubted(*wanted, thread.actual, doubted_);
    thread.managed = wanted != nullptr;
    clip(thread);
  }
}

/// A thread that has nowhere else to go runs on such CPUs: then the cgroup has them, too.
CpuSet Sandbox::cgroup_wanted() const {
  if (!keeper_.has_seen()) return plan_->cgroup;
  const CpuSet certain =
      policy::plan::without_doubted(plan_->cgroup, keeper_.cpuset().effective(), doubted_);
  CpuSet cpus = certain;
  for (const ThreadView& thread : threads_) {
    const CpuSet* wanted = plan_->cpus_for(thread.facts);
    const bool is_inside = wanted != nullptr && is_kept(thread.facts);
    if (is_inside && !wanted->intersects(certain)) cpus |= *wanted & plan_->cgroup;
  }
  return cpus;
}

/// Clips what the plan wants to what the thread's own cgroup allows, with the obstacle.
void Sandbox::clip(ThreadView& thread) const {
  thread.problem.clear();
  const CpuSet& allowed = allowed_for(thread.facts);
  if (!allowed.empty() && !thread.wanted.subset_of(allowed)) {
    thread.wanted &= allowed;
    if (thread.wanted.empty()) {
      thread.managed = false;
      thread.problem = "its cgroup allows only " + policy::format_list(allowed);
    }
  }
  if (!thread.facts.movable) {
    thread.managed = false;
    thread.problem = "bound by the kernel (PF_NO_SETAFFINITY)";
  }
  if (const std::string* refusal = masks_.refusal(thread.facts.key)) {
    thread.managed = false;
    thread.problem = *refusal;
  }
  if (!thread.seen) thread.problem = "unreadable: " + trouble_;
}

// --- apply

std::vector<policy::plan::ThreadPlacement> Sandbox::placements() const {
  std::vector<policy::plan::ThreadPlacement> placements;
  for (const ThreadView& thread : threads_) {
    if (!thread.managed || !thread.seen) continue;
    placements.push_back(
        {thread.facts.key, wanted_now(thread), thread.actual, allowed_for(thread.facts)});
  }
  return placements;
}

/// A thread that is to have all that its cgroup will allow follows the cgroup on its own way there.
CpuSet Sandbox::wanted_now(const ThreadView& thread) const {
  const bool follows = keeper_.is_open() && is_kept(thread.facts) && thread.wanted == plan_->cgroup;
  return follows ? allowed_for(thread.facts) : thread.wanted;
}

std::vector<policy::plan::ThreadPlacement> Sandbox::placements_of_originals() const {
  std::vector<policy::plan::ThreadPlacement> placements;
  for (const ThreadView& thread : threads_) {
    if (masks_.refusal(thread.facts.key) != nullptr || !thread.seen || !thread.facts.movable) {
      continue;
    }
    const int pid = thread.facts.key.pid;
    const CpuSet& allowed = allowed_for(thread.facts);
    placements.push_back({thread.facts.key, masks_.original_of(pid, allowed), thread.actual,
                          allowed, false, masks_.is_to_be_freed(thread.facts.key),
                          masks_.original_of(pid, {})});
  }
  return placements;
}

bool Sandbox::has_originals() const {
  return trouble_.empty() && policy::plan::diff(placements_of_originals()).empty();
}

void Sandbox::record(const WriteResult& result) {
  const auto thread = std::ranges::find(threads_, result.key,
                                        [](const ThreadView& view) { return view.facts.key; });
  if (thread == threads_.end()) return;
  switch (result.status) {
    case WriteResult::Status::kDone:
      thread->actual = result.actual;
      if (thread->seen) thread->problem.clear();
      break;
    case WriteResult::Status::kRetry:
      if (!result.actual.empty()) thread->actual = result.actual;
      thread->problem = result.error.message;
      break;
    case WriteResult::Status::kRefused:
      masks_.refuse(result.key, result.error.message);
      thread->managed = false;
      thread->problem = result.error.message;
      break;
    case WriteResult::Status::kGone:
      threads_.erase(thread);
      break;
  }
}

}  // namespace ka::line
