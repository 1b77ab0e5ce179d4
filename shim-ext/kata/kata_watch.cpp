// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/kata/kata_watch.hpp"

#include <utility>

#include "base/files.hpp"
#include "base/text.hpp"
#include "shim-ext/kata/persist.hpp"

namespace ka::kata {
namespace {

namespace fs = std::filesystem;
using policy::ledger::Source;

Source source_of(bool rust) { return rust ? Source::kCgroup : Source::kPersist; }

}  // namespace

KataWatch::KataWatch(boost::asio::io_context& io, const base::Clock& clock, Folders folders,
                     Hooks hooks, const log::Log& log)
    : folders_(std::move(folders)),
      hooks_(std::move(hooks)),
      log_(log),
      inotify_(io,
               [this] {
                 tries_ = 0;
                 refresh();
               }),
      again_(io, clock) {}

void KataWatch::refresh() {
  std::set<std::string> there;
  const bool was_incomplete = std::exchange(incomplete_, true);
  listed_ = true;
  std::vector<std::string> fresh = list(folders_.go, false, there);
  const std::vector<std::string> rust = list(folders_.rust, true, there);
  fresh.insert(fresh.end(), rust.begin(), rust.end());
  find_shims(fresh);
  report_starting(fresh);
  Events events;
  bool is_all_read = true;
  for (auto& [id, sandbox] : sandboxes_) {
    if (!paused_ && there.contains(id)) is_all_read &= read(id, sandbox, events);
  }
  incomplete_ = !is_all_read;
  drop_gone(there, events);
  const bool is_completed = was_incomplete && !incomplete_;
  if (!events.empty() || is_completed) hooks_.report(events);
  if (incomplete_) try_again();
}

void KataWatch::set_paused(bool paused) {
  if (std::exchange(paused_, paused) == paused) return;
  sandboxes_.clear();
  tries_ = 0;
  refresh();
}

KataWatch::Extent KataWatch::extent() const {
  Extent extent;
  for (const auto& [id, sandbox] : sandboxes_) {
    if (sandbox.read) ++(sandbox.rust ? extent.rust : extent.go);
  }
  return extent;
}

/// Notes the sandboxes of a directory in `there`, and returns those that were not known.
std::vector<std::string> KataWatch::list(const fs::path& folder, bool rust,
                                         std::set<std::string>& there) {
  inotify_.watch_nearest(folder);  // Kata makes it with the first sandbox
  std::vector<std::string> fresh;
  const auto names = base::list_directory(folder);
  if (!names && !is_gone(names)) keep(rust, there, names.error());
  for (const std::string& id : names.value_or(std::vector<std::string>{})) {
    if (!base::is_id(id)) continue;
    std::error_code failed;
    const bool is_folder = fs::is_directory(folder / id, failed);
    if (!is_folder && !(failed && sandboxes_.contains(id))) continue;
    there.insert(id);
    const auto [entry, added] = sandboxes_.try_emplace(id);
    entry->second.rust = rust;
    if (!added) continue;
    inotify_.watch_nearest(folder / id);
    fresh.push_back(id);
  }
  if (!fresh.empty()) tries_ = 0;
  return fresh;
}

/// A directory that cannot be listed is not empty: what was known of it stays.
void KataWatch::keep(bool rust, std::set<std::string>& there, const base::Error& error) {
  listed_ = false;
  log_.warning("cannot list Kata's sandboxes", {{"reason", error.message}});
  for (const auto& [id, sandbox] : sandboxes_) {
    if (sandbox.rust == rust) there.insert(id);
  }
}

void KataWatch::find_shims(const std::vector<std::string>& fresh) {
  std::optional<std::map<std::string, policy::ProcessId>> all;
  for (const std::string& id : fresh) {
    Sandbox& sandbox = sandboxes_[id];
    sandbox.shim = hooks_.shim_by_bundle(folders_.tasks, id);
    if (sandbox.shim) continue;
    if (!all) all = hooks_.find_shims();
    if (const auto found = all->find(id); found != all->end()) sandbox.shim = found->second;
  }
}

/// Of sandboxes that have a shim and no VMM yet.
void KataWatch::report_starting(const std::vector<std::string>& fresh) {
  for (const std::string& id : fresh) {
    const Sandbox& sandbox = sandboxes_[id];
    if (!sandbox.shim || hooks_.vmm_of_shim(*sandbox.shim)) continue;
    policy::ledger::PodSeen pod;
    pod.id = id;
    pod.vmm = sandbox.shim;
    hooks_.starting({source_of(sandbox.rust), std::move(pod)});
  }
}

/// False: there is more to come.
bool KataWatch::read(const std::string& id, Sandbox& sandbox, Events& events) {
  return sandbox.rust ? read_rust(id, sandbox, events) : read_go(id, sandbox, events);
}

/// False: the file is not there yet, or not all of it.
bool KataWatch::read_go(const std::string& id, Sandbox& sandbox, Events& events) {
  const fs::path file = folders_.go / id / "persist.json";
  const auto stamp = watch::stamp_of(file);
  if (!stamp || *stamp == watch::Stamp{}) return false;
  if (sandbox.read == stamp) return true;
  const auto text = base::read_regular_file(file, kMaxPersist);
  auto persisted = text ? parse_persist(*text, id) : unexpected(text.error());
  if (!persisted) {
    log_.debug("persist.json not usable yet",
               {{"sandbox", id}, {"reason", persisted.error().message}});
    return false;
  }
  persisted->pod.vmm = hooks_.vmm_at(persisted->vmm_pid);
  if (!persisted->pod.vmm) return false;
  sandbox.read = stamp;
  events.push_back({Source::kPersist, std::move(persisted->pod)});
  auto before = std::exchange(sandbox.containers, {});
  for (policy::ledger::ContainerSeen& seen : persisted->containers) {
    before.erase(seen.id);
    sandbox.containers.insert(seen.id);
    events.push_back({Source::kPersist, std::move(seen)});
  }
  for (const std::string& gone : before) {
    events.push_back({Source::kPersist, policy::ledger::ContainerGone{id, gone}});
  }
  return true;
}

/// False: there is no VMM yet.
bool KataWatch::read_rust(const std::string& id, Sandbox& sandbox, Events& events) const {
  if (sandbox.read) return true;
  policy::ledger::PodSeen pod;
  pod.id = id;
  if (sandbox.shim) pod.vmm = hooks_.vmm_of_shim(*sandbox.shim);
  if (!pod.vmm) return false;
  sandbox.read = watch::Stamp{};
  events.push_back({Source::kCgroup, std::move(pod)});
  return true;
}

void KataWatch::drop_gone(const std::set<std::string>& there, Events& events) {
  std::erase_if(sandboxes_, [&](const auto& entry) {
    const auto& [id, sandbox] = entry;
    if (there.contains(id)) return false;
    if (sandbox.read) {
      events.push_back({source_of(sandbox.rust), policy::ledger::PodGone{id}});
    }
    return true;
  });
}

void KataWatch::try_again() {
  if (++tries_ > kTries) return;
  again_.in(kPause, [this] { refresh(); });
}

}  // namespace ka::kata
