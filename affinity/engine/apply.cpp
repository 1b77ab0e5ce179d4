#include "affinity/engine/apply.hpp"

namespace ka::engine {
namespace {

using base::ErrorCode;
using Fate = Applied::Fate;

constexpr int kAttempts = 3;

/// Any failure to read the line means that the thread is not there any more.
bool is_same_thread(const policy::ThreadKey& key, base::ThreadStats& stats) {
  const auto stat = stats.read(key.pid, key.tid);
  return stat && stat->start_time == key.start_time;
}

base::Result<void> write_mask(const policy::Write& write, AffinityCalls& calls) {
  return write.everywhere ? calls.set_everywhere(write.key.tid)
                          : calls.set(write.key.tid, write.cpus);
}

/// EAGAIN, EBUSY and their like pass; a mask that the cgroup refuses (EINVAL) does not until the
/// cgroup was read again, but trying it twice more costs nothing.
base::Result<void> write_with_patience(const policy::Write& write, AffinityCalls& calls) {
  auto done = write_mask(write, calls);
  for (int i = 1; i < kAttempts && !done && done.error().code == ErrorCode::kTransient; ++i) {
    done = write_mask(write, calls);
  }
  return done;
}

Fate fate_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kGone:
      return Fate::kGone;
    case ErrorCode::kTransient:
      return Fate::kRetry;
    default:
      return Fate::kRefused;
  }
}

Applied failed(const policy::Write& write, const base::Error& error) {
  return {write.key, fate_of(error.code), {}, error};
}

Applied read_again(const policy::Write& write, AffinityCalls& calls, base::ThreadStats& stats) {
  auto actual = calls.get(write.key.tid);
  if (!actual) return failed(write, actual.error());
  if (!is_same_thread(write.key, stats)) return {write.key, Fate::kGone, {}, {}};
  if (*actual == write.cpus) return {write.key, Fate::kDone, std::move(*actual), {}};
  return {write.key,
          Fate::kRetry,
          std::move(*actual),
          {ErrorCode::kTransient, "the kernel kept " + policy::format_list(*actual), 0}};
}

/// I9. The start time was read in the pass that asks for the write, a moment ago; that the thread
/// is still one of its process is asked again here, and the start time is read again after the
/// write.
Applied apply_one(const policy::Write& write, AffinityCalls& calls, base::ThreadStats& stats) {
  if (!calls.exists(write.key.pid, write.key.tid)) return {write.key, Fate::kGone, {}, {}};
  const auto done = write_with_patience(write, calls);
  if (!done) return failed(write, done.error());
  return read_again(write, calls, stats);
}

}  // namespace

std::vector<Applied> apply(const std::vector<policy::Write>& writes, AffinityCalls& calls,
                           base::ThreadStats& stats) {
  std::vector<Applied> applied;
  applied.reserve(writes.size());
  for (const policy::Write& write : writes) applied.push_back(apply_one(write, calls, stats));
  return applied;
}

}  // namespace ka::engine
