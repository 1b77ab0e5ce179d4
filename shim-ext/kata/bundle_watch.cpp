// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/kata/bundle_watch.hpp"

#include <utility>

#include "base/files.hpp"

namespace ka::kata {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> names_in(const fs::path& directory) {
  return base::list_directory(directory).value_or(std::vector<std::string>{});
}

}  // namespace

BundleWatch::BundleWatch(boost::asio::io_context& io, const base::Clock& clock, fs::path tasks,
                         Probe probe)
    : io_(io),
      clock_(clock),
      tasks_(std::move(tasks)),
      probe_(std::move(probe)),
      inotify_(io, [this] { refresh(); }) {}

void BundleWatch::refresh() {
  inotify_.watch_nearest(tasks_);
  std::set<fs::path> there;
  for (const std::string& space : names_in(tasks_)) list(tasks_ / space, there);
  std::erase_if(bundles_, [&](const auto& entry) { return !there.contains(entry.first); });
  started_ = true;
}

void BundleWatch::list(const fs::path& space, std::set<fs::path>& there) {
  if (!inotify_.watch(space)) return;
  for (const std::string& id : names_in(space)) {
    const fs::path directory = space / id;
    there.insert(directory);
    if (bundles_.contains(directory)) {
      probe_again(directory, Effort::kBundle);
    } else {
      begin(directory);
    }
  }
}

void BundleWatch::begin(const fs::path& directory) {
  // Watched before it is read: a write in between is seen by one or the other.
  if (!inotify_.watch(directory)) return;
  auto made = std::make_unique<Entry>(io_, clock_);
  made->bundle.directory = directory;
  made->bundle.id = directory.filename();
  auto& entry = bundles_.emplace(directory, std::move(made)).first->second;
  if (probe(*entry, Effort::kBundle)) {
    entry.reset();
  } else if (started_) {
    try_again(*entry);
  }
}

/// True: done.
bool BundleWatch::probe(Entry& entry, Effort effort) {
  if (!entry.is_read) entry.is_read = read_bundle(entry.bundle).has_value();
  return entry.bundle.is_container || probe_(entry.bundle, effort);
}

void BundleWatch::probe_again(const fs::path& directory, Effort effort) {
  const auto found = bundles_.find(directory);
  if (found == bundles_.end() || !found->second) return;
  if (probe(*found->second, effort)) {
    found->second.reset();
  } else if (effort == Effort::kNode) {
    try_again(*found->second);
  }
}

void BundleWatch::try_again(Entry& entry) {
  if (entry.searches == kSearches.size()) return;
  entry.again.in(kSearches[entry.searches++], [this, directory = entry.bundle.directory] {
    probe_again(directory, Effort::kNode);
  });
}

}  // namespace ka::kata
