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

auto not_there(const std::string& what) { return base::fail(base::ErrorCode::kGone, what); }

const char* runtime_of(bool rust) { return rust ? "Kata's runtime-rs" : "Kata's Go runtime"; }

/// "2 of 3 sandboxes not read: a (reason), b (reason)".
class Misses {
 public:
  void add(const std::string& id, const base::Error& error) {
    constexpr int kNamed = 3;
    if (++number_ > kNamed) return;
    named_ += (number_ == 1 ? "" : ", ") + id + " (" + base::printable(error.message) + ')';
  }

  std::string text(std::size_t of, bool rust) const {
    if (number_ == 0) return "";
    return std::to_string(number_) + " of " + std::to_string(of) +
           (of == 1 ? " sandbox of " : " sandboxes of ") + runtime_of(rust) +
           " not read: " + named_;
  }

 private:
  int number_ = 0;
  std::string named_;
};

}  // namespace

KataWatch::KataWatch(boost::asio::io_context& io, const base::Clock& clock, Folders folders,
                     Hooks hooks, const log::Log& log)
    : clock_(clock),
      folders_(std::move(folders)),
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
  inotify_.begin();
  const bool was_incomplete = std::exchange(incomplete_, true);
  unlisted_.clear();
  std::vector<std::string> fresh = list(folders_.go, false, there);
  const std::vector<std::string> rust = list(folders_.rust, true, there);
  fresh.insert(fresh.end(), rust.begin(), rust.end());
  listed_ = unlisted_.empty();
  find_shims(fresh);
  report_starting(fresh);
  Events events;
  incomplete_ = !read_all(there, events);
  drop_gone(there, events);
  const bool is_completed = was_incomplete && !incomplete_;
  const bool is_news = update_extents();
  if (!events.empty() || is_completed || is_news) hooks_.report(events);
  if (incomplete_) try_again();
}

void KataWatch::set_paused(bool paused) {
  if (std::exchange(paused_, paused) == paused) return;
  sandboxes_.clear();
  tries_ = 0;
  refresh();
}

/// Notes the sandboxes of a directory in `there`, and returns those that were not known.
std::vector<std::string> KataWatch::list(const fs::path& folder, bool rust,
                                         std::set<std::string>& there) {
  inotify_.watch_nearest(folder);  // Kata makes it with the first sandbox
  std::vector<std::string> fresh;
  const auto names = base::list_directory(folder);
  if (!names && !is_gone(names)) {
    unlisted_.emplace(rust, names.error());
    keep(rust, there);
  }
  for (const std::string& id : names.value_or(std::vector<std::string>{})) {
    if (!base::is_id(id) || !may_be_sandbox(folder / id)) continue;
    there.insert(id);
    const auto [entry, added] = sandboxes_.try_emplace(id);
    entry->second.rust = rust;
    inotify_.watch_nearest(folder / id);
    if (added) fresh.push_back(id);
  }
  if (!fresh.empty()) tries_ = 0;
  return fresh;
}

/// A directory, or something that cannot be seen.
bool KataWatch::may_be_sandbox(const fs::path& entry) const {
  std::error_code failed;
  if (fs::is_directory(entry, failed)) return true;
  const bool is_seen = !failed || failed == std::errc::no_such_file_or_directory;
  return !is_seen || (failed && sandboxes_.contains(entry.filename()));
}

/// A directory that cannot be listed is not empty: what was known of it stays.
void KataWatch::keep(bool rust, std::set<std::string>& there) {
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

/// Of sandboxes that have a shim, and no VMM that can be seen: to narrow the shim is never wrong.
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
bool KataWatch::read_all(const std::set<std::string>& there, Events& events) {
  if (paused_) return true;
  bool is_all_read = true;
  for (auto& [id, sandbox] : sandboxes_) {
    if (!there.contains(id)) continue;
    const auto read = this->read(id, sandbox, events);
    record(id, sandbox, read);
    is_all_read &= read.has_value();
  }
  return is_all_read;
}

base::Result<void> KataWatch::read(const std::string& id, Sandbox& sandbox, Events& events) const {
  return sandbox.rust ? read_rust(id, sandbox, events) : read_go(id, sandbox, events);
}

void KataWatch::record(const std::string& id, Sandbox& sandbox,
                       const base::Result<void>& read) const {
  if (read) {
    sandbox.unread.reset();
    return;
  }
  if (sandbox.unread && sandbox.unread->error == read.error()) return;
  const std::initializer_list<log::Field> fields{{"sandbox", id}, {"reason", read.error().message}};
  if (read.error().code == base::ErrorCode::kConflict) {
    log_.warning("sandbox not read: its VMM cannot be determined", fields);
  } else {
    log_.debug("sandbox not read yet", fields);
  }
  const auto since = sandbox.unread ? sandbox.unread->since : clock_.now();
  sandbox.unread = Unread{since, read.error()};
}

/// kGone: the file is not there yet, or names no VMM. Other errors: it cannot be read, or not all
/// of it is there.
base::Result<void> KataWatch::read_go(const std::string& id, Sandbox& sandbox,
                                      Events& events) const {
  const fs::path file = folders_.go / id / "persist.json";
  const auto stamp = watch::stamp_of(file);
  if (stamp && *stamp == watch::Stamp{}) return not_there("there is no persist.json");
  if (stamp && sandbox.read == stamp) return {};
  const auto text = base::read_regular_file(file, kMaxPersist);
  if (!text) return unexpected(text.error());
  if (!stamp) return base::fail(base::ErrorCode::kTransient, "persist.json was just replaced");
  auto persisted = parse_persist(*text, id);
  if (!persisted) return unexpected(persisted.error());
  const auto vmm = hooks_.find_named({id, persisted->vmm_pid, *stamp, sandbox.shim});
  if (!vmm) return unexpected(vmm.error());
  persisted->pod.vmm = *vmm;
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
  return {};
}

/// kGone: there is no VMM yet. Other errors: whether there is one cannot be seen.
base::Result<void> KataWatch::read_rust(const std::string& id, Sandbox& sandbox,
                                        Events& events) const {
  if (sandbox.read) return {};
  if (!sandbox.shim) return not_there("it has no shim");
  const auto vmm = hooks_.vmm_of_shim(*sandbox.shim);
  if (!vmm) return unexpected(vmm.error());
  policy::ledger::PodSeen pod;
  pod.id = id;
  pod.vmm = *vmm;
  sandbox.read = watch::Stamp{};
  events.push_back({Source::kCgroup, std::move(pod)});
  return {};
}

void KataWatch::drop_gone(const std::set<std::string>& there, Events& events) {
  for (auto entry = sandboxes_.begin(); entry != sandboxes_.end();) {
    auto& [id, sandbox] = *entry;
    if (there.contains(id) || is_without_directory(id, sandbox)) {
      ++entry;
      continue;
    }
    if (sandbox.read) {
      events.push_back({source_of(sandbox.rust), policy::ledger::PodGone{id}});
    }
    entry = sandboxes_.erase(entry);
  }
}

/// Whoever removes the directory of a sandbox that runs does not end it.
bool KataWatch::is_without_directory(const std::string& id, Sandbox& sandbox) const {
  if (!sandbox.read || !hooks_.has_vmm(id)) return false;
  record(id, sandbox,
         base::fail(base::ErrorCode::kTransient, "its directory is gone, and its VMM runs"));
  return true;
}

/// True: something else is missed than before.
bool KataWatch::update_extents() {
  const Extents before = std::exchange(extents_, {count(false), count(true)});
  return before.go.missed != extents_.go.missed || before.rust.missed != extents_.rust.missed;
}

KataWatch::Extent KataWatch::count(bool rust) const {
  Extent extent;
  std::size_t known = 0;
  Misses misses;
  for (const auto& [id, sandbox] : sandboxes_) {
    if (sandbox.rust != rust) continue;
    ++known;
    if (sandbox.read) ++extent.read;
    if (is_missed(sandbox)) misses.add(id, sandbox.unread->error);
  }
  extent.missed = misses.text(known, rust);
  if (const auto unlisted = unlisted_.find(rust); unlisted != unlisted_.end()) {
    extent.missed = std::string("sandboxes of ") + runtime_of(rust) +
                    " cannot be listed: " + unlisted->second.message;
  }
  return extent;
}

/// Where nothing is to be read, a sandbox that has a VMM, or may have one, is missed; one that has
/// none has ended, or owns nothing yet.
bool KataWatch::is_missed(const Sandbox& sandbox) const {
  if (!sandbox.unread || clock_.now() - sandbox.unread->since < kMissedAfter) return false;
  return !is_gone(sandbox.unread->error) ||
         (sandbox.shim && !is_gone(hooks_.vmm_of_shim(*sandbox.shim)));
}

void KataWatch::try_again() {
  if (++tries_ > kTries) return;
  again_.in(kPause, [this] { refresh(); });
}

}  // namespace ka::kata
