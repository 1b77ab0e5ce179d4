#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "affinity/base/process.hpp"
#include "vmm/backend.hpp"
#include "vmm/merge.hpp"
#include "vmm/procfs/relatives.hpp"
#include "vmm/procfs/thread_names.hpp"
#include "vmm/procfs/vhost_user.hpp"
#include "vmm/threads.hpp"

namespace ka::vmm {
namespace {

using policy::Role;

/// What a look found before anything was named: while it stays the same, so does the answer.
struct Sighting {
  SeenProcess vmm;
  std::vector<SeenProcess> beside;  ///< by pid
  std::optional<MonitorFacts> monitor;

  bool operator==(const Sighting&) const = default;
};

/// Merges what all backends claim, and sets how many vCPUs there are by the most trustworthy one
/// that can say.
Merge merge_claims(const Look& look, std::size_t& vcpus_there) {
  Merge merge(look.vmm.threads);
  for (const Backend& backend : backend_table()) {
    Claims claims = backend.read(look);
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
  for (const MonitorFacts::Vcpu& told : monitor->vcpus) {
    if ((told.tid != claim.tid && told.tid != 0) || told.facts.index != facts.index) continue;
    facts = told.facts;
    facts.apic_id = claim.apic_id;
  }
  return facts;
}

bool is_in_shim(const Look& look) {
  return role_of_process(look.roots.proc, look.vmm, look.vmm.threads) == Role::kShim;
}

bool has_vm(const Look& look, const Merge& merge) {
  return look.fds.kvm_vms > 0 || std::ranges::any_of(look.vmm.threads, [&](const SeenThread& seen) {
           return merge.find(seen.key.tid) != nullptr || belongs_to_vm(seen.comm);
         });
}

void name_vmm_threads(VmmThreads& result, const Look& look) {
  std::size_t vcpus_there = 0;
  const Merge merge = merge_claims(look, vcpus_there);
  // A shim that has no VM stands for the one that it will start. Dragonball is a part of the shim,
  // whose own threads are none of the VM's.
  const bool in_shim = is_in_shim(look);
  const bool shared = in_shim && has_vm(look, merge);
  const Role other = in_shim && !shared ? Role::kShim : Role::kEmulator;
  for (const SeenThread& seen : look.vmm.threads) {
    const Claim* claim = merge.find(seen.key.tid);
    if (shared && claim == nullptr && !belongs_to_vm(seen.comm)) continue;
    policy::ThreadFacts thread{.key = seen.key, .role = other, .name = seen.comm};
    if (claim != nullptr) {
      thread.role = claim->role;
      if (!claim->iothread.empty()) thread.name = claim->iothread;
      if (claim->role == Role::kVcpu) {
        thread.vcpu_index = *claim->index;
        result.vcpus.push_back(vcpu_facts(*claim, look.monitor));
      }
    }
    result.threads.push_back(std::move(thread));
  }
  std::ranges::sort(result.vcpus, {}, &policy::VcpuFacts::index);
  result.settled = result.vcpus.size() >= vcpus_there;
  result.vcpu_source = merge.vcpu_source();
  result.conflicts = merge.conflicts();
}

void name_beside(VmmThreads& result, const SeenProcess& process, Role role) {
  for (const SeenThread& seen : process.threads) {
    const int vcpu = role == Role::kPit ? 0 : -1;
    result.threads.push_back(
        {.key = seen.key, .role = role, .vcpu_index = vcpu, .name = seen.comm});
  }
}

/// QEMU starts the thread of a plugged vCPU before KVM has the vCPU (accel/kvm/kvm-accel-ops.c,
/// kvm_vcpu_thread_fn): a new thread that nobody claims may be one.
bool has_unclaimed_newcomer(const SeenProcess& before, const VmmThreads& answer) {
  return std::ranges::any_of(answer.threads, [&](const policy::ThreadFacts& thread) {
    return thread.role == Role::kEmulator &&
           std::ranges::find(before.threads, thread.key, &SeenThread::key) == before.threads.end();
  });
}

bool has_own_vhost(const SeenProcess& vmm) {
  return std::ranges::any_of(vmm.threads, [](const SeenThread& thread) {
    const auto meaning = read_thread_name(thread.comm);
    return meaning && meaning->role == Role::kVhost;
  });
}

}  // namespace

struct Discovery::State {
  Roots roots;
  Target target;

  int pid = 0;  ///< thread group of the VMM, once it was seen
  std::uint64_t start_time = 0;

  std::optional<Sighting> last;
  VmmThreads answer;
  std::vector<int> relatives;  ///< shims and virtiofsd by descent

  /// Kernel threads, looked for again only when the number of vhost devices changed, or a few
  /// times more while there are fewer workers than devices.
  std::vector<int> vhost;
  int vhost_devices = 0;
  int vhost_searches = 0;
  /// Processes that serve devices of the VM by vhost-user, with their start times. One begins with
  /// the guest's driver, of which nothing tells: while the VMM is connected to others they are
  /// looked for a few times.
  std::map<int, std::uint64_t> serving;
  int serving_searches = 0;
  bool serving_wanted = false;
  std::vector<int> pit;  ///< looked for once there are vCPUs: it is made before them
  bool pit_searched = false;

  base::Result<SeenProcess> read_vmm(base::ThreadStats& stats);
  std::vector<int> own_processes() const;
  std::vector<SeenProcess> read_beside(base::ThreadStats& stats) const;
  void find_relatives(const SeenProcess& vmm);
  void find_vhost(const SeenProcess& vmm, const OpenFds& fds);
  void find_pit(const SeenProcess& vmm, const OpenFds& fds);
  void find_serving(const OpenFds& fds);
  bool serves(const SeenProcess& process) const;
  VmmThreads name_all(const Sighting& sighting, const OpenFds& fds) const;
};

base::Result<SeenProcess> Discovery::State::read_vmm(base::ThreadStats& stats) {
  if (pid == 0) {
    const auto group = thread_group(roots.proc, target.vmm_pid);
    if (!group) return unexpected(group.error());
    pid = *group;
  }
  auto vmm = read_process(stats, pid);
  if (!vmm) return vmm;
  if (start_time == 0) start_time = vmm->start_time;
  if (start_time != vmm->start_time) {
    return base::fail(base::ErrorCode::kGone,
                      "process " + std::to_string(pid) + " is another one by now");
  }
  return vmm;
}

std::vector<int> Discovery::State::own_processes() const {
  std::vector<int> pids;
  // Everything is in the root cgroup: it is nobody's own.
  if (!target.cgroup.empty() && target.cgroup != roots.cgroup) {
    pids = cgroup_members(target.cgroup);
  }
  pids.insert(pids.end(), relatives.begin(), relatives.end());
  pids.insert(pids.end(), vhost.begin(), vhost.end());
  pids.insert(pids.end(), pit.begin(), pit.end());
  std::ranges::sort(pids);
  const auto rest = std::ranges::unique(pids);
  pids.erase(rest.begin(), rest.end());
  return pids;
}

/// virtiofsd serves one VM, whoever started it. Another back-end may be the node's (SPDK, Open
/// vSwitch), which places it itself: it counts only inside the sandbox's cgroup.
std::vector<SeenProcess> Discovery::State::read_beside(base::ThreadStats& stats) const {
  const std::vector<int> own = own_processes();
  std::vector<SeenProcess> beside;
  for (const int other : own) {
    if (other == pid) continue;
    if (auto process = read_process(stats, other)) beside.push_back(std::move(*process));
  }
  for (const auto& [other, since] : serving) {
    if (std::ranges::binary_search(own, other)) continue;
    auto process = read_process(stats, other);
    if (!process || !serves(*process)) continue;
    const Role role = role_of_process(roots.proc, *process, {});
    if (role == Role::kVirtiofsd) beside.push_back(std::move(*process));
  }
  return beside;
}

void Discovery::State::find_relatives(const SeenProcess& vmm) {
  std::vector<int> shims = shim_ancestors(roots.proc, vmm);
  relatives = shims;
  if (program_name(roots.proc, target.proxy_pid) == kProxyProgram) {
    relatives.push_back(target.proxy_pid);
  }
  shims.push_back(vmm.pid);
  const std::vector<int> virtiofsd = virtiofsd_children(roots.proc, shims);
  relatives.insert(relatives.end(), virtiofsd.begin(), virtiofsd.end());
}

void Discovery::State::find_vhost(const SeenProcess& vmm, const OpenFds& fds) {
  constexpr int kSearches = 5;
  if (fds.vhost_devices != vhost_devices) vhost_searches = 0;
  vhost_devices = fds.vhost_devices;
  if (vhost_devices == 0 || has_own_vhost(vmm)) {
    vhost.clear();
    return;
  }
  const bool complete = vhost.size() >= static_cast<std::size_t>(vhost_devices);
  if ((complete && vhost_searches > 0) || vhost_searches >= kSearches) return;
  ++vhost_searches;
  vhost = vhost_kernel_threads(roots.proc, vmm);
}

void Discovery::State::find_pit(const SeenProcess& vmm, const OpenFds& fds) {
  if (fds.kvm_vcpus.empty() || pit_searched) return;
  pit_searched = true;
  pit = pit_kernel_threads(roots.proc, vmm);
}

void Discovery::State::find_serving(const OpenFds& fds) {
  constexpr int kSearches = 10;
  if (serving_searches >= kSearches) return;
  ++serving_searches;
  auto peers = unix_peers(roots.proc, pid, fds.sockets);
  std::erase_if(peers,
                [&](int peer) { return std::ranges::find(relatives, peer) != relatives.end(); });
  serving.clear();
  for (const int process : back_ends(roots.proc, pid, peers)) {
    const auto stat = base::ProcFs(roots.proc).stat(process);
    if (stat) serving.emplace(process, stat->start_time);
  }
  serving_wanted = serving.size() < peers.size() && serving_searches < kSearches;
}

bool Discovery::State::serves(const SeenProcess& process) const {
  const auto found = serving.find(process.pid);
  return found != serving.end() && found->second == process.start_time;
}

VmmThreads Discovery::State::name_all(const Sighting& sighting, const OpenFds& fds) const {
  VmmThreads result{.vmm_pid = pid};
  const MonitorFacts* monitor = sighting.monitor ? &*sighting.monitor : nullptr;
  name_vmm_threads(result, {.roots = roots, .vmm = sighting.vmm, .fds = fds, .monitor = monitor});
  for (const SeenProcess& process : sighting.beside) {
    Role role = role_of_process(roots.proc, process, sighting.vmm.threads);
    if (role == Role::kHelper && serves(process)) role = Role::kVhost;
    name_beside(result, process, role);
  }
  if (serving_wanted) result.settled = false;
  std::ranges::sort(result.threads, {}, &policy::ThreadFacts::key);
  return result;
}

Discovery::Discovery(Roots roots, Target target) : state_(std::make_unique<State>()) {
  state_->roots = std::move(roots);
  state_->target = std::move(target);
}

Discovery::Discovery(Discovery&&) noexcept = default;
Discovery& Discovery::operator=(Discovery&&) noexcept = default;
Discovery::~Discovery() = default;

const Target& Discovery::target() const { return state_->target; }

void Discovery::forget() {
  state_->last.reset();
  state_->vhost_searches = 0;
  state_->serving_searches = 0;
}

base::Result<VmmThreads> Discovery::look(const MonitorFacts* monitor, base::ThreadStats& stats) {
  State& state = *state_;
  auto vmm = state.read_vmm(stats);
  if (!vmm) return unexpected(std::move(vmm.error()));
  Sighting now{.vmm = std::move(*vmm), .beside = state.read_beside(stats), .monitor = {}};
  if (monitor != nullptr) now.monitor = *monitor;
  if (state.answer.settled && state.last == now) return state.answer;

  const OpenFds fds = read_fds(state.roots.proc, state.pid).value_or(OpenFds{});
  state.find_relatives(now.vmm);
  state.find_vhost(now.vmm, fds);
  state.find_pit(now.vmm, fds);
  state.find_serving(fds);
  now.beside = state.read_beside(stats);
  state.answer = state.name_all(now, fds);
  if (state.last && has_unclaimed_newcomer(state.last->vmm, state.answer)) {
    state.answer.settled = false;
  }
  state.last = std::move(now);
  return state.answer;
}

base::Result<VmmThreads> Discovery::look(const MonitorFacts* monitor) {
  base::ThreadStats stats(state_->roots.proc);
  return look(monitor, stats);
}

base::Result<VmmThreads> discover(const Roots& roots, const Target& target,
                                  const MonitorFacts* monitor) {
  return Discovery(roots, target).look(monitor);
}

}  // namespace ka::vmm
