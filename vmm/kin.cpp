// SPDX-License-Identifier: Apache-2.0
#include "vmm/kin.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/process.hpp"
#include "vmm/procfs/relatives.hpp"
#include "vmm/procfs/thread_names.hpp"
#include "vmm/procfs/vhost_user.hpp"

namespace ka::vmm {
namespace {

Processes by_pid(const std::vector<policy::ProcessId>& processes) {
  Processes map;
  for (const auto& process : processes) map.emplace(process.pid, process.start_time);
  return map;
}

bool has_own_vhost(const SeenProcess& vmm) {
  return std::ranges::any_of(vmm.threads, [](const SeenThread& thread) {
    const auto meaning = read_thread_name(thread.comm);
    return meaning && meaning->role == policy::Role::kVhost;
  });
}

}  // namespace

bool has_process(const Processes& some, const policy::ProcessId& process) {
  const auto found = some.find(process.pid);
  return found != some.end() && found->second == process.start_time;
}

void Kin::find(const Roots& roots, const Target& target, const SeenProcess& vmm, const OpenFds& fds,
               bool has_monitor, base::Trouble& trouble) {
  find_relatives(roots, target, vmm, trouble);
  find_vhost(roots, vmm, fds, trouble);
  find_kvm_threads(roots, vmm, fds, has_monitor, trouble);
  find_serving(roots, vmm, fds, trouble);
}

void Kin::find_started(const Roots& roots, const SeenProcess& shim, base::Trouble& trouble) {
  if (!started_.found.empty() || !started_.due()) return;
  const auto started = children(roots.proc, shim.pid, trouble);
  if (started.empty()) return;
  started_.record(by_pid(kvm_kernel_threads(roots.proc, shim, started, trouble)));
}

void Kin::renew() {
  vhost_.renew();
  serving_.renew();
  kvm_threads_.renew();
}

bool Kin::has(const policy::ProcessId& process) const {
  return std::ranges::any_of(
      std::array{&relatives_, &vhost_.found, &kvm_threads_.found, &started_.found},
      [&](const auto* some) { return has_process(*some, process); });
}

bool Kin::serves(const policy::ProcessId& process) const {
  return has_process(serving_.found, process);
}

bool Kin::is_connected(const policy::ProcessId& process) const {
  return has_process(connected_, process);
}

std::set<int> Kin::pids() const {
  std::set<int> pids;
  for (const auto* some :
       {&relatives_, &vhost_.found, &kvm_threads_.found, &started_.found, &serving_.found}) {
    for (const auto& [pid, start_time] : *some) pids.insert(pid);
  }
  return pids;
}

void Kin::find_relatives(const Roots& roots, const Target& target, const SeenProcess& vmm,
                         base::Trouble& trouble) {
  relatives_ = by_pid(shim_ancestors(roots.proc, vmm, trouble));
  std::vector<int> parents{vmm.pid};
  for (const auto& [pid, start_time] : relatives_) parents.push_back(pid);
  relatives_.merge(by_pid(virtiofsd_children(roots.proc, parents, trouble)));
  if (!target.proxy) return;
  const auto proxy = find_proxy(roots.proc, target.proxy->pid);
  trouble.record(proxy);
  if (proxy && *proxy == *target.proxy) relatives_.emplace(proxy->pid, proxy->start_time);
}

void Kin::find_vhost(const Roots& roots, const SeenProcess& vmm, const OpenFds& fds,
                     base::Trouble& trouble) {
  if (std::exchange(vhost_devices_, fds.vhost_devices) != fds.vhost_devices) vhost_.renew();
  if (vhost_devices_ == 0 || has_own_vhost(vmm)) {
    vhost_.found.clear();
    return;
  }
  const bool complete = vhost_.found.size() >= static_cast<std::size_t>(vhost_devices_);
  if (!vhost_.due() || (complete && vhost_.tries > 0)) return;
  vhost_.record(by_pid(vhost_kernel_threads(roots.proc, vmm, trouble)));
}

void Kin::find_kvm_threads(const Roots& roots, const SeenProcess& vmm, const OpenFds& fds,
                           bool has_monitor, base::Trouble& trouble) {
  if (std::exchange(has_monitor_, has_monitor) != has_monitor) kvm_threads_.renew();
  if (fds.kvm_vcpus.empty() || !kvm_threads_.due()) return;
  kvm_threads_.record(by_pid(kvm_kernel_threads(roots.proc, vmm, {}, trouble)));
}

/// A process's identity is read before its mappings: if that was another one's, it is not there
/// under this start time any more.
void Kin::find_serving(const Roots& roots, const SeenProcess& vmm, const OpenFds& fds,
                       base::Trouble& trouble) {
  if (!serving_.due()) return;
  auto peers = unix_peers(roots.proc, vmm.pid, fds.sockets, trouble);
  std::erase_if(peers, [&](int peer) { return relatives_.contains(peer); });
  Processes start_times, serving;
  for (const int peer : peers) {
    const auto stat = base::ProcFs(roots.proc).stat(peer);
    trouble.record(stat);
    if (stat) start_times.emplace(peer, stat->start_time);
  }
  for (const int process : back_ends(roots.proc, vmm.pid, peers, trouble)) {
    if (start_times.contains(process)) serving.emplace(process, start_times[process]);
  }
  serving_.record(std::move(serving));
  connected_ = std::move(start_times);
  serving_wanted_ = serving_.found.size() < peers.size() && serving_.due();
}

}  // namespace ka::vmm
