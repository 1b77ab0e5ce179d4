// SPDX-License-Identifier: Apache-2.0
#include "vmm/procfs/thread_list.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/files.hpp"

namespace ka::vmm {
namespace {

void add(SeenProcess& process, base::ThreadStat&& stat) {
  const bool dead = stat.state == 'Z' || stat.state == 'X';
  if (stat.tid == process.pid) {
    process.ppid = stat.ppid;
    process.start_time = stat.start_time;
    process.comm = stat.comm;
  }
  if (dead) return;
  process.threads.push_back({.key = {process.pid, stat.tid, stat.start_time},
                             .comm = std::move(stat.comm),
                             .movable = stat.movable});
}

/// "No such file" is believed where the kernel knows no such thread either.
bool has_ended(const base::Error& error, int pid, int tid) {
  if (!is_gone(error)) return false;
  return ::syscall(SYS_tgkill, pid, tid, 0) != 0 && errno == ESRCH;
}

void record_unread(SeenProcess& process, int tid, const base::Error& error) {
  if (process.unread.empty()) process.why_unread = error;
  process.unread.push_back(tid);
}

bool is_unread(const SeenProcess& process, int tid) {
  return std::ranges::binary_search(process.unread, tid);
}

}  // namespace

base::Result<SeenProcess> read_process(base::ThreadStats& stats, int pid) {
  const auto tids = stats.threads(pid);
  if (!tids) return unexpected(tids.error());
  SeenProcess process{.pid = pid};
  process.threads.reserve(tids->size());
  for (const int tid : *tids) {
    auto stat = stats.read(pid, tid);
    if (stat) {
      add(process, std::move(*stat));
    } else if (!has_ended(stat.error(), pid, tid)) {
      record_unread(process, tid, stat.error());
    }
  }
  const std::string name = "process " + std::to_string(pid);
  if (is_unread(process, pid)) {
    if (is_gone(process.why_unread)) {
      return base::fail(base::ErrorCode::kTransient, name + " exists and cannot be read");
    }
    return unexpected(process.why_unread);
  }
  if (process.start_time == 0) return base::fail_errno(ESRCH, name);
  if (process.threads.empty() && process.unread.empty()) {
    return base::fail(base::ErrorCode::kGone, name + " is gone");
  }
  return process;
}

base::Result<int> thread_group(const std::filesystem::path& proc, int tid) {
  constexpr std::string_view kField = "\nTgid:\t";
  const auto status = base::read_file(proc / std::to_string(tid) / "status");
  if (!status) return unexpected(status.error());
  const std::size_t start = status->find(kField);
  if (start == std::string::npos) {
    return base::fail(base::ErrorCode::kInvalid, "malformed /proc status file");
  }
  std::string_view value = std::string_view(*status).substr(start + kField.size());
  value = value.substr(0, value.find('\n'));
  const auto group = base::parse_number(value);
  if (!group) return unexpected(group.error());
  return static_cast<int>(*group);
}

}  // namespace ka::vmm
