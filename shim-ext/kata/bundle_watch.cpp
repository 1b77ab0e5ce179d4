// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/kata/bundle_watch.hpp"

#include <algorithm>
#include <utility>

#include "base/files.hpp"
#include "base/text.hpp"

namespace ka::kata {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> names_in(const fs::path& directory) {
  return base::list_directory(directory).value_or(std::vector<std::string>{});
}

}  // namespace

BundleWatch::BundleWatch(boost::asio::io_context& io, const base::Clock& clock, fs::path tasks,
                         Hooks hooks)
    : clock_(clock),
      tasks_(std::move(tasks)),
      hooks_(std::move(hooks)),
      inotify_(io, [this] { refresh(); }),
      next_(io, clock) {}

void BundleWatch::refresh() {
  inotify_.begin();
  inotify_.watch_nearest(tasks_);
  std::set<fs::path> there;
  for (const std::string& space : names_in(tasks_)) list(tasks_ / space, there);
  std::erase_if(bundles_, [&](const auto& entry) { return !there.contains(entry.first); });
  started_ = true;
  probe({});
  await_next();
}

void BundleWatch::list(const fs::path& space, std::set<fs::path>& there) {
  if (is_gone(inotify_.watch(space))) return;
  for (const std::string& id : names_in(space)) {
    const fs::path directory = space / id;
    there.insert(directory);
    const auto known = bundles_.find(directory);
    if (known == bundles_.end()) {
      begin(directory);
    } else if (known->second) {
      (void)inotify_.watch(directory);
    }
  }
}

void BundleWatch::begin(const fs::path& directory) {
  // Watched before it is read: a write in between is seen by one or the other.
  if (is_gone(inotify_.watch(directory))) return;
  Entry& entry = bundles_[directory].emplace();
  entry.bundle.directory = directory;
  entry.bundle.id = directory.filename();
  if (started_) schedule(entry);
}

/// Of all that wait, by their directories and by `running`.
void BundleWatch::probe(const vmm::StartingShims& running) {
  std::vector<Found> found;
  for (auto& [directory, entry] : bundles_) {
    if (!entry) continue;
    const vmm::FoundShim shim = find(*entry, running);
    if (shim.kind == vmm::ShimKind::kKata) found.push_back({entry->bundle, shim.id});
    if (shim.kind == vmm::ShimKind::kOther) entry.reset();
  }
  if (found.empty()) return;
  for (const fs::path& directory : hooks_.handle(found)) {
    if (const auto done = bundles_.find(directory); done != bundles_.end()) done->second.reset();
  }
}

vmm::FoundShim BundleWatch::find(Entry& entry, const vmm::StartingShims& running) const {
  if (!entry.is_read) entry.is_read = read_bundle(entry.bundle).has_value();
  const bool has_none = entry.bundle.is_container || !base::is_id(entry.bundle.id);
  if (has_none) return {vmm::ShimKind::kOther, {}};
  const vmm::FoundShim shim = hooks_.shim_in_bundle(entry.bundle);
  if (shim.kind != vmm::ShimKind::kNone || !entry.due) return shim;
  const auto found = running.find(entry.bundle.id);
  return found == running.end() ? shim : found->second;
}

void BundleWatch::search() {
  const auto begun = clock_.now();
  const vmm::StartingShims running = hooks_.starting_shims();
  const auto ended = clock_.now();
  resting_until_ = ended + kRest * (ended - begun);
  probe(running);
  for (auto& [directory, entry] : bundles_) {
    if (entry && entry->due && *entry->due <= ended) schedule(*entry);
  }
  await_next();
}

void BundleWatch::schedule(Entry& entry) const {
  entry.due.reset();
  if (entry.searches < kSearches.size()) entry.due = clock_.now() + kSearches[entry.searches++];
}

void BundleWatch::await_next() {
  std::optional<base::Clock::Time> due;
  for (const auto& [directory, entry] : bundles_) {
    if (entry && entry->due) due = std::min(due.value_or(*entry->due), *entry->due);
  }
  if (!due) return next_.cancel();
  next_.at(std::max(*due, resting_until_), [this] { search(); });
}

}  // namespace ka::kata
