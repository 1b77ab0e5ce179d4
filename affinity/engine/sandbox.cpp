// SPDX-License-Identifier: Apache-2.0
#include "affinity/engine/sandbox.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

namespace ka::engine {
namespace {

using host::CgroupFacts;
using policy::CpuSet;
using policy::Role;

/// Number of hard links of /proc/<pid>/task: threads + 2 (proc_task_getattr in fs/proc/base.c).
std::size_t count_tasks(const base::ProcFs& proc, int pid) {
  struct stat status{};
  const auto path = proc.root() / std::to_string(pid) / "task";
  return ::stat(path.c_str(), &status) == 0 ? status.st_nlink : 0;
}

/// ID, kata_ID, cri-containerd-ID.scope, kubepods-podUID.slice:cri-containerd:ID.
bool is_named_after(std::string_view cgroup, std::string_view id) {
  constexpr std::string_view kScope = ".scope", kSeparators = "_-:";
  if (cgroup.ends_with(kScope)) cgroup.remove_suffix(kScope.size());
  if (!cgroup.ends_with(id)) return false;
  cgroup.remove_suffix(id.size());
  return cgroup.empty() || kSeparators.find(cgroup.back()) != std::string_view::npos;
}

/// The sandbox's own cgroup: as a source named it, or the VMM's where it or one above it is named
/// after the sandbox. A VM that was started by hand sits in a cgroup with strangers, who are none
/// of our business; neither is the root cgroup, which holds the whole machine.
std::string own_cgroup(const policy::ledger::PodRecord& pod,
                       const std::optional<host::Cgroups>& cgroups, const CgroupFacts& of_vmm) {
  if (!cgroups) return {};
  const std::filesystem::path& mount = cgroups->mount();
  const auto directory = pod.cgroup.empty()
                             ? of_vmm.directory
                             : mount / std::filesystem::path(pod.cgroup).relative_path();
  const auto below = directory.lexically_normal().lexically_relative(mount);
  if (below.empty() || below == "." || *below.begin() == "..") return {};
  const auto is_own = [&](const auto& part) { return is_named_after(part.native(), pod.id); };
  const bool own = !pod.cgroup.empty() || std::ranges::any_of(below, is_own);
  return own ? directory.string() : std::string();
}

/// Empty sets where there are no cpuset cgroups, or the process is gone.
base::Result<CgroupFacts> read_cgroup(const Eyes& eyes, int tid) {
  if (!eyes.cgroups) return CgroupFacts{};
  auto facts = eyes.cgroups->of_task(tid);
  const bool has_none = !facts && (facts.error().code == base::ErrorCode::kGone ||
                                   facts.error().code == base::ErrorCode::kNotFound);
  return has_none ? CgroupFacts{} : facts;
}

/// libvirt keeps cgroups of its own for the threads of a domain (vcpuN, iothreadN, emulator; with
/// version 2 in one more, "libvirt", in between; src/hypervisor/domain_cgroup.c) and writes their
/// cpusets itself when it is told to pin. What bounds the domain is the cgroup above them.
std::filesystem::path domain_cgroup(std::filesystem::path directory) {
  const auto is_threads = [](const std::string& name) {
    return name == "emulator" || name.starts_with("vcpu") || name.starts_with("iothread");
  };
  if (is_threads(directory.filename())) directory = directory.parent_path();
  if (directory.filename() == "libvirt") directory = directory.parent_path();
  return directory;
}

/// The cgroup that a VMM plans within.
base::Result<CgroupFacts> read_vmm_cgroup(const Eyes& eyes, const policy::ledger::PodRecord& pod) {
  auto facts = read_cgroup(eyes, pod.vmm ? pod.vmm->pid : 0);
  if (!facts || pod.domain.empty() || facts->directory.empty()) return facts;
  return eyes.cgroups->read(domain_cgroup(facts->directory));
}

bool has_thread(const vmm::VmmThreads& seen, int tid) {
  return std::ranges::any_of(seen.threads,
                             [tid](const auto& thread) { return thread.key.tid == tid; });
}

int any_vcpu_tid(const vmm::VmmThreads& seen) {
  for (const auto& thread : seen.threads) {
    if (thread.role == Role::kVcpu) return thread.key.tid;
  }
  return seen.vmm_pid;
}

/// With version 1 Kata moves only the vCPU threads into the sandbox cgroup.
base::Result<CgroupFacts> read_cgroup_of_vcpus(const Eyes& eyes, const vmm::VmmThreads& seen,
                                               const CgroupFacts& of_vmm) {
  if (!eyes.cgroups || eyes.cgroups->version() != 1) return of_vmm;
  const auto directory = eyes.cgroups->directory_of(any_vcpu_tid(seen));
  const bool has_ended = !directory && directory.error().code == base::ErrorCode::kGone;
  if (has_ended || (directory && *directory == of_vmm.directory)) return of_vmm;
  return directory ? eyes.cgroups->read(*directory) : unexpected(directory.error());
}

/// What stands against managing the cgroup whose cpuset is in force for the VMM; empty: nothing.
std::string why_not_managed(const policy::ledger::PodRecord& pod,
                            const std::optional<host::Cgroups>& cgroups, const CgroupFacts& of_vmm,
                            const std::string& own) {
  if (!cgroups || cgroups->version() != 2) return "only cgroup v2 can be managed";
  if (!pod.domain.empty()) return "libvirt manages its cgroup";
  if (own.empty()) return "it has no cgroup of its own";
  if (pod.source == policy::ledger::Source::kCgroup) {
    return "its cpuset is the only source for its containers";
  }
  const auto below = of_vmm.cpuset_directory.lexically_relative(own);
  const bool inside = !below.empty() && *below.begin() != "..";
  return inside ? "" : "its cgroup has no cpuset of its own";
}

}  // namespace

base::Result<void> Sandbox::observe_afresh(const Eyes& eyes, const policy::ledger::PodRecord& pod,
                                           CgroupMode mode) {
  if (discovery_) discovery_->forget();
  return observe(eyes, pod, mode);
}

base::Result<void> Sandbox::observe(const Eyes& eyes, const policy::ledger::PodRecord& pod,
                                    CgroupMode mode) {
  auto seen = observe_all(eyes, pod, mode);
  if (!seen) {
    trouble_ = seen.error().message;
    for (ThreadView& thread : threads_) thread.seen = false;
  }
  return seen;
}

base::Result<void> Sandbox::observe_all(const Eyes& eyes, const policy::ledger::PodRecord& pod,
                                        CgroupMode mode) {
  const auto of_vmm = read_vmm_cgroup(eyes, pod);
  if (!of_vmm) return unexpected(of_vmm.error());
  const vmm::Target target{pod.vmm.value_or(policy::ProcessId{}), id_,
                           own_cgroup(pod, eyes.cgroups, *of_vmm), pod.proxy_pid};
  narrowed_by_proxy_ = pod.original_cpus;
  if (!discovery_ || discovery_->target() != target) discovery_.emplace(eyes.roots, target);
  auto seen = discovery_->look(monitor_ ? &*monitor_ : nullptr, eyes.stats);
  if (seen && forget_ended(*seen)) seen = discovery_->look(&*monitor_, eyes.stats);
  if (!seen) return unexpected(std::move(seen.error()));
  seen_ = std::move(*seen);
  trouble_ = seen_.trouble;
  keeper_.look(eyes.cgroups, of_vmm->cpuset_directory, mode,
               mode == CgroupMode::kObey
                   ? std::string()
                   : why_not_managed(pod, eyes.cgroups, *of_vmm, target.cgroup));
  read_cgroups(eyes, pod, *of_vmm);
  read_masks(eyes);
  remember_originals();
  interrupts_.look(eyes.roots, seen_.vmm_pid);
  return {};
}

void Sandbox::observe_masks(const Eyes& eyes, const policy::ledger::PodRecord& pod) {
  const auto of_vmm = read_vmm_cgroup(eyes, pod);
  if (!of_vmm) return note_trouble(of_vmm.error());
  read_cgroups(eyes, pod, *of_vmm);
  read_masks(eyes);
  assign();
}

/// Drops what the monitor told of threads that have ended since: it told of an unplugged vCPU
/// before it was unplugged, which contradicts nobody. True when there was any.
bool Sandbox::forget_ended(const vmm::VmmThreads& now) {
  if (!monitor_) return false;
  const auto ended = [&](const auto& told) {
    return has_thread(seen_, told.tid) && !has_thread(now, told.tid);
  };
  return std::erase_if(monitor_->vcpus, ended) + std::erase_if(monitor_->iothreads, ended) > 0;
}

/// What the processes of the sandbox may use, each by its own cgroup.
void Sandbox::read_cgroups(const Eyes& eyes, const policy::ledger::PodRecord& pod,
                           const CgroupFacts& of_vmm) {
  const auto known = std::exchange(allowed_by_pid_, {});
  kept_.clear();
  enter_cgroup(seen_.vmm_pid, of_vmm);
  task_counts_ = {{seen_.vmm_pid, count_tasks(eyes.proc, seen_.vmm_pid)}};
  for (const auto& thread : seen_.threads) {
    const int pid = thread.key.pid;
    if (task_counts_.contains(pid)) continue;
    task_counts_[pid] = count_tasks(eyes.proc, pid);
    if (const auto cgroup = read_cgroup(eyes, pid)) {
      enter_cgroup(pid, *cgroup);
    } else {
      note_trouble(cgroup.error());
      if (known.contains(pid)) allowed_by_pid_[pid] = known.at(pid);
    }
  }
  const auto of_vcpus = pod.domain.empty() ? read_cgroup_of_vcpus(eyes, seen_, of_vmm) : of_vmm;
  if (!of_vcpus) return note_trouble(of_vcpus.error());
  cgroup_ = of_vcpus->cpuset_directory.string();
  cgroup_cpus_.reset();
  if (!of_vcpus->cpus.empty()) cgroup_cpus_ = of_vcpus->cpus;
}

/// Something cannot be seen now: what is known of it stays.
void Sandbox::note_trouble(const base::Error& error) {
  if (trouble_.empty()) trouble_ = error.message;
}

void Sandbox::enter_cgroup(int pid, const CgroupFacts& cgroup) {
  allowed_by_pid_[pid] = cgroup.cpus;
  if (cgroup.cpuset_directory == keeper_.directory()) kept_.insert(pid);
}

const CpuSet& Sandbox::allowed_for(const policy::ThreadFacts& thread) const {
  static const CpuSet kUnknown;
  if (keeper_.only_watches() && kept_.contains(thread.key.pid)) return keeper_.cpuset().bound;
  if (thread.role == Role::kVcpu && cgroup_cpus_) return *cgroup_cpus_;
  const auto found = allowed_by_pid_.find(thread.key.pid);
  return found == allowed_by_pid_.end() ? kUnknown : found->second;
}

/// Threads that have ended since they were listed are left out; others whose mask cannot be read
/// keep the one that was read last.
void Sandbox::read_masks(const Eyes& eyes) {
  const auto known = std::exchange(threads_, {});
  threads_.reserve(seen_.threads.size());
  for (const auto& facts : seen_.threads) {
    auto actual = read_mask(eyes, facts.key);
    if (!actual && actual.error().code == base::ErrorCode::kGone) continue;
    ThreadView view;
    view.facts = facts;
    if (actual) {
      view.actual = std::move(*actual);
    } else {
      view.seen = false;
      note_trouble(actual.error());
      const auto before = std::ranges::find(
          known, facts.key, [](const ThreadView& thread) { return thread.facts.key; });
      if (before != known.end()) view.actual = before->actual;
    }
    threads_.push_back(std::move(view));
  }
}

/// Of a thread that was read in this look: another one's would be of no use.
base::Result<CpuSet> Sandbox::read_mask(const Eyes& eyes, const policy::ThreadKey& key) const {
  const bool was_read = std::ranges::find(seen_.unread, key) == seen_.unread.end();
  if (was_read) return eyes.calls.get(key.tid);
  return base::fail(base::ErrorCode::kTransient, seen_.trouble);
}

void Sandbox::remember_originals() {
  for (const ThreadView& thread : threads_) {
    const auto& key = thread.facts.key;
    if (key.pid != key.tid || !thread.seen) continue;
    const auto known = originals_.find(key.pid);
    if (known != originals_.end() && known->second.start_time == key.start_time) continue;
    state::Original original;
    if (const state::Original* parents = inherited(thread)) {
      original = *parents;
    } else {
      original.everywhere = thread.actual == allowed_for(thread.facts);
      original.cpus = original.everywhere ? CpuSet{} : thread.actual;
    }
    original.start_time = key.start_time;
    originals_[key.pid] = std::move(original);
  }
  std::erase_if(originals_, [&](const auto& entry) { return !task_counts_.contains(entry.first); });
}

/// Of a process that was born with the mask that we had given to one of the sandbox's (a VMM, by
/// its shim): what that one had before. Null for others.
const state::Original* Sandbox::inherited(const ThreadView& thread) const {
  const auto parent = std::ranges::find_if(originals_, [&](const auto& entry) {
    const auto left = left_.find(entry.first);
    return entry.second.start_time < thread.facts.key.start_time && left != left_.end() &&
           (left->second & allowed_for(thread.facts)) == thread.actual;
  });
  return parent == originals_.end() ? nullptr : &parent->second;
}

void Sandbox::remember_masks() {
  interrupts_.remember();
  left_.clear();
  for (const ThreadView& thread : threads_) left_[thread.facts.key.tid] = thread.actual;
}

bool Sandbox::looks_unchanged(const Eyes& eyes, CgroupKeeper::Time now) const {
  if (!trouble_.empty() || !seen_.settled || !keeper_.looks_unchanged(eyes.cgroups, now) ||
      !interrupts_.looks_unchanged(eyes.roots, seen_.vmm_pid, now)) {
    return false;
  }
  for (const auto& [pid, count] : task_counts_) {
    if (count_tasks(eyes.proc, pid) != count) return false;
  }
  return std::ranges::all_of(threads_, [&](const ThreadView& thread) {
    const auto left = left_.find(thread.facts.key.tid);
    const auto actual = eyes.calls.get(thread.facts.key.tid);
    return left != left_.end() && actual && *actual == left->second;
  });
}

bool Sandbox::uses(const CpuSet& cpus) const {
  return std::ranges::any_of(
      threads_, [&](const ThreadView& thread) { return thread.actual.intersects(cpus); });
}

int Sandbox::count_changed_masks(AffinityCalls& calls) const {
  return static_cast<int>(std::ranges::count_if(threads_, [&](const ThreadView& thread) {
    const auto left = left_.find(thread.facts.key.tid);
    const auto actual = calls.get(thread.facts.key.tid);
    // What it was to have all the time: something that was in the way has gone.
    const bool mended = actual && *actual == thread.wanted;
    return left != left_.end() && actual && !mended && *actual != left->second;
  }));
}

policy::SandboxFacts Sandbox::facts(const policy::ledger::PodRecord& pod) const {
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
  return facts;
}

std::optional<CpuSet> Sandbox::reachable_cpus() const {
  return keeper_.in_charge() ? keeper_.cpuset().bound : cgroup_cpus_;
}

/// What the cgroup of a thread beside the vCPUs allows, or can be made to; nullptr: not known.
const CpuSet* Sandbox::reachable_for(const policy::ThreadFacts& thread) const {
  if (keeper_.in_charge() && kept_.contains(thread.key.pid)) return &keeper_.cpuset().bound;
  const auto found = allowed_by_pid_.find(thread.key.pid);
  return found == allowed_by_pid_.end() || found->second.empty() ? nullptr : &found->second;
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

void Sandbox::forgive() {
  refused_.clear();
  interrupts_.forgive();
  keeper_.forgive();
}

void Sandbox::take_plan(policy::plan::SandboxPlan plan) {
  plan_ = std::move(plan);
  assign();
}

/// Gives each thread and interrupt its set of the plan.
void Sandbox::assign() {
  interrupts_.take_plan(*plan_);
  for (ThreadView& thread : threads_) {
    const CpuSet* wanted = plan_->cpus_for(thread.facts);
    thread.wanted = wanted == nullptr ? CpuSet{} : *wanted;
    thread.managed = wanted != nullptr;
    judge(thread);
  }
}

/// Clips what the plan wants to what the thread's own cgroup allows, and says what is in the way.
void Sandbox::judge(ThreadView& thread) const {
  thread.problem.clear();
  const CpuSet& allowed = allowed_for(thread.facts);
  if (!allowed.empty() && !thread.wanted.subset_of(allowed)) {
    thread.wanted &= allowed;
    if (thread.wanted.empty()) {
      thread.managed = false;
      thread.problem = "its cgroup allows only " + policy::format_list(allowed);
    }
  }
  if (const auto refused = refused_.find(thread.facts.key); refused != refused_.end()) {
    thread.managed = false;
    thread.problem = refused->second;
  }
  if (!thread.seen) thread.problem = "unreadable: " + trouble_;
}

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
  const bool follows =
      keeper_.is_open() && kept_.contains(thread.facts.key.pid) && thread.wanted == plan_->cgroup;
  return follows ? allowed_for(thread.facts) : thread.wanted;
}

std::vector<policy::plan::ThreadPlacement> Sandbox::placements_of_originals() const {
  std::vector<policy::plan::ThreadPlacement> placements;
  for (const ThreadView& thread : threads_) {
    if (refused_.contains(thread.facts.key) || !thread.seen) continue;
    placements.push_back(
        {thread.facts.key, original_of(thread), thread.actual, allowed_for(thread.facts)});
  }
  return placements;
}

/// What a thread would have without any program of ours; empty: not known. The shim proxy narrowed
/// itself before any process of the sandbox was born, so what these were first seen with is its
/// doing. To a thread whose mask and cgroup have no CPU in common the kernel gives all that the
/// cgroup has (guarantee_online_cpus() in kernel/cgroup/cpuset.c).
CpuSet Sandbox::original_of(const ThreadView& thread) const {
  const CpuSet& allowed = allowed_for(thread.facts);
  const auto found = originals_.find(thread.facts.key.pid);
  CpuSet original;
  if (narrowed_by_proxy_) {
    original = *narrowed_by_proxy_;
  } else if (found != originals_.end() && !found->second.everywhere) {
    original = found->second.cpus;
  }
  if (allowed.empty()) return original;
  original &= allowed;
  return original.empty() ? allowed : original;
}

bool Sandbox::has_originals() const {
  return trouble_.empty() &&
         std::ranges::all_of(placements_of_originals(), [](const auto& placement) {
           return placement.wanted.empty() || placement.wanted == placement.actual;
         });
}

void Sandbox::note(const Applied& applied) {
  const auto thread = std::ranges::find(threads_, applied.key,
                                        [](const ThreadView& view) { return view.facts.key; });
  if (thread == threads_.end()) return;
  switch (applied.fate) {
    case Applied::Fate::kDone:
      thread->actual = applied.actual;
      thread->problem.clear();
      break;
    case Applied::Fate::kRetry:
      if (!applied.actual.empty()) thread->actual = applied.actual;
      thread->problem = applied.error.message;
      break;
    case Applied::Fate::kRefused:
      refused_[applied.key] = applied.error.message;
      thread->managed = false;
      thread->problem = applied.error.message;
      break;
    case Applied::Fate::kGone:
      threads_.erase(thread);
      break;
  }
}

void Sandbox::set_isolation(std::vector<policy::plan::ContainerIsolation> isolation) {
  isolation_ = std::move(isolation);
  std::erase_if(announced_, [&](const auto& entry) {
    return std::ranges::find(isolation_, entry.first,
                             &policy::plan::ContainerIsolation::container) == isolation_.end();
  });
}

bool Sandbox::announce(const std::string& container, const std::string& obstacles) {
  const auto [known, added] = announced_.try_emplace(container, obstacles);
  if (!added && known->second == obstacles) return false;
  known->second = obstacles;
  return true;
}

state::Saved Sandbox::saved(const policy::ledger::PodRecord& pod) const {
  return {pod, plan_, originals_, released_, left_alone_, keeper_.saved(), interrupts_.saved()};
}

void Sandbox::restore(const state::Saved& saved) {
  plan_ = saved.plan;
  originals_ = saved.originals;
  released_ = saved.released;
  left_alone_ = saved.left_alone;
  interrupts_.restore(saved.interrupts);
  if (saved.cgroup) keeper_.restore(*saved.cgroup);
}

}  // namespace ka::engine
