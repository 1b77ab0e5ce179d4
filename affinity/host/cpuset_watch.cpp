// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/cpuset_watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/inotify.hpp"

namespace ka::host {
namespace {

/// The files of a cpuset cgroup whose writing changes what its tasks may do, in both versions.
constexpr std::array<std::string_view, 5> kFiles = {"cpuset.cpus", "cpuset.mems", "cgroup.procs",
                                                    "cgroup.threads", "tasks"};

bool concerns_us(const char* name) {
  return std::ranges::find(kFiles, std::string_view(name)) != kFiles.end();
}

}  // namespace

base::Result<CpusetWatch> CpusetWatch::open() {
  auto inotify = base::open_inotify();
  if (!inotify) return unexpected(inotify.error());
  return CpusetWatch(std::move(*inotify));
}

base::Result<void> CpusetWatch::add(const std::string& directory) {
  const auto watch = base::watch_directory(inotify_.get(), directory, IN_MODIFY);
  const auto known = watches_.find(directory);
  if (known != watches_.end() && (!watch || known->second != *watch))
    drop(directory, known->second);
  if (!watch) return unexpected(watch.error());
  watches_[directory] = *watch;
  directories_[*watch] = directory;
  return {};
}

void CpusetWatch::drop(const std::string& directory, int watch) {
  ::inotify_rm_watch(inotify_.get(), watch);
  directories_.erase(watch);
  watches_.erase(directory);
}

base::Result<void> CpusetWatch::watch_only(const std::set<std::string>& directories) {
  const auto known = watches_;
  for (const auto& [directory, watch] : known) {
    if (!directories.contains(directory)) drop(directory, watch);
  }
  base::Result<void> result;
  for (const std::string& directory : directories) {
    auto added = add(directory);
    const bool gone = is_gone(added);
    if (!added && !gone && result) result = std::move(added);
  }
  return result;
}

void CpusetWatch::record(int watch, unsigned mask, const char* name,
                         std::set<std::string>& written) {
  if ((mask & IN_Q_OVERFLOW) != 0) {
    for (const auto& [directory, ignored] : watches_) written.insert(directory);
    return;
  }
  const auto known = directories_.find(watch);
  if (known == directories_.end()) return;
  if ((mask & IN_IGNORED) != 0) {
    watches_.erase(known->second);
    directories_.erase(known);
  } else if (concerns_us(name)) {
    written.insert(known->second);
  }
}

base::Result<std::set<std::string>> CpusetWatch::drain() {
  std::set<std::string> written;
  std::vector<char> buffer(16384);
  for (;;) {
    const ssize_t got = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return written;
    if (got < 0) return base::fail_errno(errno, "inotify");
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof(event));
      const char* name = event.len == 0 ? "" : buffer.data() + at + sizeof(event);
      record(event.wd, event.mask, name, written);
      at += sizeof(event) + event.len;
    }
  }
}

}  // namespace ka::host
