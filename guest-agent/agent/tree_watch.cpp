// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/tree_watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ranges>
#include <string_view>

namespace ka::agent {
namespace {

constexpr std::uint32_t kEvents =
    IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_MODIFY | IN_ONLYDIR;

/// The files whose writing matters; others change all the time.
bool is_relevant(std::string_view name) {
  return name == "cpu.max" || name == "cgroup.procs" || name == "cgroup.subtree_control";
}

}  // namespace

base::Result<void> TreeWatch::open() {
  close();
  inotify_ = base::Fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (inotify_) return {};
  return base::fail_errno(errno, "cannot watch cgroups");
}

void TreeWatch::close() {
  watches_.clear();
  is_complete_ = false;
  inotify_.reset();
}

bool TreeWatch::watch_only(const std::vector<std::filesystem::path>& directories) {
  std::map<std::filesystem::path, int> wanted;
  bool news = false;
  is_complete_ = true;
  for (const auto& directory : directories) {
    const auto known = watches_.find(directory);
    // A directory that was made anew has another watch; asking for one that is there is harmless.
    const int watch = ::inotify_add_watch(inotify_.get(), directory.c_str(), kEvents);
    if (watch >= 0) wanted[directory] = watch;
    is_complete_ &= watch >= 0 || errno == ENOENT;
    news |= watch >= 0 && (known == watches_.end() || known->second != watch);
    if (known != watches_.end()) watches_.erase(known);
  }
  for (const auto& [directory, watch] : watches_) {
    const auto values = wanted | std::views::values;
    if (std::ranges::find(values, watch) == values.end()) {
      ::inotify_rm_watch(inotify_.get(), watch);
    }
  }
  watches_ = std::move(wanted);
  return news;
}

base::Result<CgroupNews> TreeWatch::drain() {
  alignas(inotify_event) std::array<char, 4096> buffer;
  CgroupNews news;
  for (;;) {
    const ssize_t size = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno != EAGAIN) return base::fail_errno(errno, "cannot watch cgroups");
    if (size <= 0) return news;
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* name = buffer.data() + at + sizeof event;
      handle(event, event.len > 0 ? std::string_view(name) : std::string_view(), news);
      at += sizeof event + event.len;
    }
  }
}

void TreeWatch::handle(const inotify_event& event, std::string_view name, CgroupNews& news) const {
  const bool written = (event.mask & IN_MODIFY) != 0;
  news.changed |= (event.mask & (IN_ISDIR | IN_Q_OVERFLOW | IN_IGNORED)) != 0;
  news.changed |= written && is_relevant(name);
  if (!written || name != "cpuset.cpus") return;
  const auto watched =
      std::ranges::find(watches_, event.wd, [](const auto& it) { return it.second; });
  if (watched != watches_.end()) news.cpusets.push_back(watched->first);
}

}  // namespace ka::agent
