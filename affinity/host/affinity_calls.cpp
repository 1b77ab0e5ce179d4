// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/affinity_calls.hpp"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <vector>

namespace ka::host {
namespace {

using Words = std::array<std::uint64_t, policy::kMaxIds / 64>;

base::Result<void> write_mask(int tid, const std::uint64_t* words, std::size_t count) {
  const long done = ::syscall(SYS_sched_setaffinity, tid, count * sizeof *words, words);
  if (done != 0) return base::fail_errno(errno, "sched_setaffinity " + std::to_string(tid));
  return {};
}

}  // namespace

bool KernelAffinityCalls::exists(int pid, int tid) {
  return ::syscall(SYS_tgkill, pid, tid, 0) == 0 || errno != ESRCH;
}

base::Result<policy::CpuSet> KernelAffinityCalls::get(int tid) {
  Words words{};
  const long bytes = ::syscall(SYS_sched_getaffinity, tid, sizeof words, words.data());
  if (bytes < 0) return base::fail_errno(errno, "sched_getaffinity " + std::to_string(tid));
  const auto used = static_cast<std::size_t>(bytes) / sizeof(std::uint64_t);
  return policy::CpuSet::from_words(std::span(words).first(used));
}

base::Result<void> KernelAffinityCalls::set(const policy::ThreadKey& thread,
                                            const policy::CpuSet& cpus) {
  const std::vector<std::uint64_t> words = cpus.words();
  return write_mask(thread.tid, words.data(), words.size());
}

base::Result<void> KernelAffinityCalls::set_everywhere(const policy::ThreadKey& thread) {
  Words words;
  words.fill(~std::uint64_t{0});
  return write_mask(thread.tid, words.data(), words.size());
}

/// -1 is a nice value, too: only errno tells.
base::Result<int> KernelAffinityCalls::nice(int tid) {
  errno = 0;
  const int nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(tid));
  if (errno != 0) return base::fail_errno(errno, "getpriority " + std::to_string(tid));
  return nice;
}

base::Result<void> KernelAffinityCalls::set_nice(const policy::ThreadKey& thread, int nice) {
  if (::setpriority(PRIO_PROCESS, static_cast<id_t>(thread.tid), nice) == 0) return {};
  return base::fail_errno(errno, "setpriority " + std::to_string(thread.tid));
}

}  // namespace ka::host
