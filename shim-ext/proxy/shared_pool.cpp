// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/shared_pool.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/files.hpp"
#include "shim-ext/watch/kubelet_state.hpp"

namespace ka::proxy {
namespace {

base::Result<void> stay_on(const policy::CpuSet& cpus) {
  const auto words = cpus.words();
  const auto bytes = words.size() * sizeof(std::uint64_t);
  if (::syscall(SYS_sched_setaffinity, 0, bytes, words.data()) == 0) return {};
  return base::fail_errno(errno, "the shared pool, " + policy::format_list(cpus));
}

/// What this thread may use (sched_getaffinity(2)); empty where that cannot be read.
policy::CpuSet own_mask() {
  std::vector<std::uint64_t> words(policy::kMaxIds / 64);
  const auto size = words.size() * sizeof(std::uint64_t);
  if (::syscall(SYS_sched_getaffinity, 0, size, words.data()) < 0) return {};
  return policy::CpuSet::from_words(words);
}

}  // namespace

SharedPool::SharedPool(std::filesystem::path kubelet_state)
    : file_(std::move(kubelet_state)), before_(own_mask()) {}

base::Result<void> SharedPool::confine() {
  const auto now = read();
  if (!now) return unexpected(now.error());
  return now->pool.empty() ? base::Result<void>{} : stay_on(now->pool);
}

base::Result<void> SharedPool::confine_with_own() {
  const auto now = read();
  if (!now) return unexpected(now.error());
  return now->pool.empty() ? base::Result<void>{} : stay_on(now->pool | now->own);
}

base::Result<void> SharedPool::leave_others() {
  const auto now = read_changed();
  if (!now) return unexpected(now.error());
  if (now->pool.empty()) return {};
  const policy::CpuSet mask = own_mask();
  const policy::CpuSet left = mask & (now->pool | now->own);
  if (left == mask) return {};
  return stay_on(left.empty() ? now->pool : left);
}

base::Result<SharedPool::Partition> SharedPool::read_changed() {
  const auto stamp = watch::stamp_of(file_);
  return stamp && *stamp != seen_ ? read() : Partition{};
}

base::Result<SharedPool::Partition> SharedPool::read() {
  const watch::Stamp stamp = watch::stamp_of(file_).value_or(watch::Stamp{});
  if (stamp == watch::Stamp{}) return Partition{};
  const auto text = base::read_regular_file(file_, watch::kMaxKubeletState);
  if (!text) return unexpected(text.error());
  const auto state = watch::parse_kubelet_state(*text);
  // kubelet may be writing it just now: it is read again later.
  if (!state) return unexpected(state.error());
  seen_ = stamp;
  Partition now{state->seen.shared_pool.value_or(policy::CpuSet{}), {}};
  for (const policy::ledger::Claim& claim :
       state->seen.claims.value_or(std::vector<policy::ledger::Claim>{})) {
    if (!pod_uid_.empty() && claim.pod_uid == pod_uid_) now.own |= claim.cpus;
  }
  return now;
}

}  // namespace ka::proxy
