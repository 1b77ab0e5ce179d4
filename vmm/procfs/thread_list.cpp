#include "vmm/procfs/thread_list.hpp"

#include <utility>

#include "affinity/base/files.hpp"

namespace ka::vmm {
namespace {

void take(SeenProcess& process, base::ThreadStat&& stat) {
  const bool dead = stat.state == 'Z' || stat.state == 'X';
  if (stat.tid == process.pid) {
    process.ppid = stat.ppid;
    process.start_time = stat.start_time;
    process.comm = stat.comm;
  }
  if (dead) return;
  process.threads.push_back(
      {.key = {process.pid, stat.tid, stat.start_time}, .comm = std::move(stat.comm)});
}

}  // namespace

base::Result<SeenProcess> read_process(base::ThreadStats& stats, int pid) {
  const auto tids = stats.threads(pid);
  if (!tids) return unexpected(tids.error());
  SeenProcess process{.pid = pid};
  process.threads.reserve(tids->size());
  for (const int tid : *tids) {
    if (auto stat = stats.read(pid, tid)) take(process, std::move(*stat));
  }
  if (process.threads.empty() || process.start_time == 0) {
    return base::fail(base::ErrorCode::kGone, "process " + std::to_string(pid) + " is gone");
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
