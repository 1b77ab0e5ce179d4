// SPDX-License-Identifier: Apache-2.0
#include "affinity/memory/memory_worker.hpp"

#include <algorithm>
#include <utility>

#include "affinity/host/memory.hpp"
#include "affinity/host/memory_mover.hpp"
#include "policy/plan/memory.hpp"

namespace ka::memory {
namespace {

using std::chrono::nanoseconds;

/// A step is to take about this long: the kernel stops all CPUs' page caches for a moment at the
/// beginning of each (lru_cache_disable() in mm/swap.c), so steps must be few; and a change
/// of the VM's mappings waits for one step.
constexpr nanoseconds kStep = std::chrono::milliseconds(10);
constexpr std::uint64_t kSmallestStep = 1 << 20, kLargestStep = 64 << 20;
/// A vCPU that touches what is on its way waits until the step has moved it: after each step the VM
/// has this many times as long to itself.
constexpr int kRest = 3;
constexpr nanoseconds kReportPeriod = std::chrono::seconds(1);  ///< between two reports of one move

std::uint64_t next_size(std::uint64_t size, nanoseconds elapsed) {
  if (elapsed > kStep) size /= 2;
  if (elapsed < kStep / 2) size *= 2;
  return std::clamp(size, kSmallestStep, kLargestStep);
}

}  // namespace

MemoryWorker::MemoryWorker(const base::Clock& clock, base::ProcFs proc, std::filesystem::path sys,
                           Report report)
    : clock_(clock),
      proc_(std::move(proc)),
      sys_(std::move(sys)),
      report_(std::move(report)),
      thread_([this] { work(); }) {}

MemoryWorker::~MemoryWorker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void MemoryWorker::submit(MemoryJob job) {
  {
    const std::lock_guard lock(mutex_);
    drop(job.sandbox);
    waiting_.push_back(std::move(job));
  }
  changed_.notify_all();
}

void MemoryWorker::cancel(const std::string& sandbox) {
  {
    const std::lock_guard lock(mutex_);
    drop(sandbox);
  }
  changed_.notify_all();
}

/// Precondition: locked.
void MemoryWorker::drop(const std::string& sandbox) {
  std::erase_if(waiting_, [&](const MemoryJob& job) { return job.sandbox == sandbox; });
  if (running_ == sandbox) cancelled_ = true;
}

void MemoryWorker::work() {
  while (const auto job = next()) run(*job);
}

std::optional<MemoryJob> MemoryWorker::next() {
  std::unique_lock lock(mutex_);
  running_.clear();
  changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
  if (stopping_) return std::nullopt;
  MemoryJob job = std::move(waiting_.front());
  waiting_.pop_front();
  running_ = job.sandbox;
  cancelled_ = false;
  return job;
}

bool MemoryWorker::cancelled() {
  const std::lock_guard lock(mutex_);
  return stopping_ || cancelled_;
}

/// False when the job is to end.
bool MemoryWorker::pause(nanoseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return stopping_ || cancelled_; });
}

bool MemoryWorker::is_same(const MemoryJob& job) const {
  const auto stat = proc_.stat(job.vmm.pid);
  return stat && stat->start_time == job.vmm.start_time;
}

/// Where the pages of a process lay that got the number during a step is not known: they stay.
base::Result<void> MemoryWorker::check_after(const MemoryJob& job) const {
  const auto stat = proc_.stat(job.vmm.pid);
  if (!stat) return unexpected(stat.error());
  if (stat->start_time == job.vmm.start_time) return {};
  return base::fail(base::ErrorCode::kConflict,
                    "process " + std::to_string(job.vmm.pid) +
                        " ended during a step; of the process that has its number now, memory may "
                        "have been moved to nodes " +
                        policy::format_list(job.mems));
}

/// Reads where the memory is and what to do with it; false if there is nothing to report.
bool MemoryWorker::observe(const MemoryJob& job, board::MemoryView& view,
                           std::vector<host::Mapping>& mappings) {
  auto memory = host::read_memory(proc_.root(), sys_, job.vmm.pid);
  if (!is_same(job) || cancelled()) return false;
  if (!memory) {
    view.problem = memory.error().message;
    return !is_gone(memory);
  }
  view.facts = std::move(memory->facts);
  view.plan = policy::plan::plan_memory(*job.topology, job.mems, view.facts);
  mappings = std::move(memory->movable);
  return true;
}

void MemoryWorker::run(const MemoryJob& job) {
  board::MemoryView view;
  std::vector<host::Mapping> mappings;
  const auto began = clock_.now();
  if (!observe(job, view, mappings)) return;
  view.moving = job.move && !view.plan.moves.empty();
  report_(job.sandbox, view, clock_.now() - began);
  if (view.moving) move(job, std::move(view), std::move(mappings));
}

void MemoryWorker::move(const MemoryJob& job, board::MemoryView view,
                        std::vector<host::Mapping> mappings) {
  host::MemoryMover mover(job.vmm, mappings, view.plan.moves);
  std::uint64_t size = kSmallestStep;
  auto reported = clock_.now();
  while (!mover.done()) {
    const auto began = clock_.now();
    if (!is_same(job)) return;
    auto done = mover.step(size);
    const auto elapsed = clock_.now() - began;
    if (auto same = check_after(job); !same) done = std::move(same);
    if (!done) {
      if (is_gone(done)) return;
      view.problem = "cannot be moved: " + done.error().message;
      break;
    }
    size = next_size(size, elapsed);
    view.moved = mover.moved();
    view.failed = mover.failed();
    if (clock_.now() - reported > kReportPeriod) {
      reported = clock_.now();
      report_(job.sandbox, view, nanoseconds(0));
    }
    if (!pause(elapsed * kRest)) break;
  }
  const auto began = clock_.now();
  const std::string problem = view.problem;
  view.moving = false;
  if (!problem.empty()) report_(job.sandbox, view, nanoseconds(0));
  if (!observe(job, view, mappings)) return;
  if (view.problem.empty()) view.problem = problem;
  report_(job.sandbox, std::move(view), clock_.now() - began);
}

}  // namespace ka::memory
