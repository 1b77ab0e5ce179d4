// SPDX-License-Identifier: Apache-2.0
// What an operator releases and takes back: a released VM has the masks that it had before us, and
// is left alone from then on.
#include <algorithm>

#include "tests/property/model/play.hpp"

namespace ka::model {

using policy::CpuSet;

/// One thing in five is done to the whole node.
void Play::release(std::uint32_t choice) {
  const std::set<std::string> chosen = placed_or_one(choice);
  for (const std::string& id : chosen) {
    const auto [release, is_new] = released_.try_emplace(id);
    // libvirt has a domain's threads from then on, also those that could not be written.
    if (is_new) release->second.is_exact = !is_domain(id) || kernel_.is_seen();
  }
  guarded({}, [&] {
    if (is_of_node(choice)) {
      kernel_.line().release_all();
    } else if (!chosen.empty()) {
      (void)kernel_.requests().release(*chosen.begin());
    }
  });
}

void Play::reclaim(std::uint32_t choice) {
  const std::set<std::string> chosen = placed_or_one(choice);
  for (const std::string& id : chosen) released_.erase(id);
  if (is_of_node(choice)) return reclaim_all();
  guarded({}, [&] {
    if (!chosen.empty()) (void)kernel_.requests().reconcile(*chosen.begin());
  });
}

void Play::reclaim_all() {
  for (const std::string& id : placed()) released_.erase(id);
  knowledge_.dismiss();
  guarded({}, [this] { kernel_.line().reconcile_all(); });
}

/// The sandboxes that the daemon can be asked for.
std::set<std::string> Play::placed() {
  const line::Node& node = kernel_.line().node();
  std::set<std::string> ids;
  for (const std::string& id : node.sandbox_ids()) {
    if (!node.unproved.contains(id)) ids.insert(id);
  }
  return ids;
}

/// All of them, or one.
std::set<std::string> Play::placed_or_one(std::uint32_t choice) {
  const std::set<std::string> ids = placed();
  if (ids.empty() || is_of_node(choice)) return ids;
  return {*std::next(ids.begin(), static_cast<int>(choice / 5 % ids.size()))};
}

/// Something of a VM changes, and no event tells of it.
void Play::touch(const std::string& id) {
  dirty_.insert(id);
  if (const auto found = released_.find(id); found != released_.end()) {
    found->second.is_exact = false;
  }
}

/// What its first thread may run on until the daemon writes to that: what it had before us.
void Play::note_original(int pid) {
  Originals& originals = originals_[pid];
  if (originals.is_written) return;
  CpuSet mask = kernel_.calls.effective(pid);
  const bool everywhere = mask == kernel_.allowed(pid);
  const Original original{everywhere ? CpuSet{} : std::move(mask), everywhere};
  if (std::ranges::find(originals.seen, original) == originals.seen.end()) {
    originals.seen.push_back(original);
  }
}

/// The daemon is about to.
void Play::note_write(int tid) {
  const bool is_first = tid == vmm_of(tid) && kernel_.is_alive(tid);
  if (!is_first) return;
  note_original(tid);
  originals_[tid].is_written = true;
}

void Play::note_originals() {
  std::erase_if(originals_, [this](const auto& entry) { return !kernel_.is_alive(entry.first); });
  std::erase_if(released_, [this](const auto& entry) {
    const Pod* pod = world_.find(entry.first);
    return pod == nullptr || pod->pid == 0;
  });
  for (const Pod& pod : world_.pods()) {
    if (pod.pid != 0) note_original(pod.pid);
  }
}

/// The next daemon finds a VM as this one has left it, and nothing of what was before.
void Play::lose_originals(const std::string& id) {
  released_.erase(id);
  cgroups_.erase(id);
  if (const Pod* pod = world_.find(id)) originals_.erase(pod->pid);
}

/// As the kernel cuts a mask: where its cgroup has nothing of it, it is all of that.
bool Play::has_original(int tid, const Original& original) {
  const CpuSet allowed = kernel_.allowed(tid);
  const bool is_cut_off = original.everywhere || !original.cpus.intersects(allowed);
  return kernel_.calls.effective(tid) == (is_cut_off ? allowed : original.cpus & allowed);
}

/// At rest. What others did to it since is theirs.
void Play::check_released(const std::string& id, const KnownPod& pod) {
  Release& release = released_.at(id);
  const int pid = pod.vmm->pid;
  check_cgroup_is_theirs(id);
  if (std::exchange(release.is_done, true) || !release.is_exact) return;
  const auto threads = kernel_.threads_of(pid);
  const bool has_one = std::ranges::any_of(originals_[pid].seen, [&](const Original& original) {
    return std::ranges::all_of(threads, [&](int tid) { return has_original(tid, original); });
  });
  if (has_one) return;
  std::string masks;
  for (const int tid : threads) {
    masks += ' ' + policy::format_list(kernel_.calls.effective(tid));
  }
  report_failure(id + " was released, and its threads have other masks than before:" + masks);
}

/// Who owns CPUs that a released sandbox may use is told of that, and nobody else; of who may own
/// them, either is right.
void Play::check_released_are_named(const line::VerifyReport& report) {
  std::set<std::string> named;
  for (const line::Finding& finding : report.findings) {
    if (finding.reason == "released") named.insert(finding.subject);
  }
  for (const auto& [id, pod] : knowledge_.pods()) {
    if (!released_.contains(id) || pod.unsure || !pod.vmm) continue;
    CpuSet used;
    for (const int tid : kernel_.threads_of(pod.vmm->pid)) used |= kernel_.calls.effective(tid);
    const bool is_named = named.contains("sandbox " + id);
    const bool is_right = is_named ? used.intersects(knowledge_.perhaps_kept_from(id))
                                   : !used.intersects(knowledge_.foreign_to(id));
    if (is_right) continue;
    report_failure("verify " + std::string(is_named ? "names" : "does not name") +
                   " the released sandbox " + id);
  }
  const int released = static_cast<int>(released_.size());
  if (report.released == released) return;
  report_failure("verify counts " + std::to_string(report.released) + " released sandboxes, not " +
                 std::to_string(released));
}

}  // namespace ka::model
