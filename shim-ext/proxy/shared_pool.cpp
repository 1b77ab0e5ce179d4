#include "shim-ext/proxy/shared_pool.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "affinity/base/files.hpp"
#include "shim-ext/watch/kubelet_state.hpp"

namespace ka::proxy {
namespace {

base::Result<void> stay_on(const policy::CpuSet& cpus) {
  const auto& words = cpus.words();
  const auto bytes = words.size() * sizeof(std::uint64_t);
  if (::syscall(SYS_sched_setaffinity, 0, bytes, words.data()) == 0) return {};
  return base::fail_errno(errno, "the shared pool, " + policy::format_list(cpus));
}

}  // namespace

base::Result<void> SharedPool::enter() {
  const watch::Stamp stamp = watch::stamp_of(file_);
  if (stamp == watch::Stamp{} || stamp == seen_) return {};
  const auto text = base::read_file(file_);
  if (!text) return unexpected(text.error());
  const auto state = watch::parse_kubelet_state(*text);
  // kubelet may be writing it just now: the next look will tell.
  if (!state) return unexpected(state.error());
  seen_ = stamp;
  const auto& pool = state->seen.shared_pool;
  return pool && !pool->empty() ? stay_on(*pool) : base::Result<void>{};
}

}  // namespace ka::proxy
