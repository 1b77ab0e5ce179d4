// SPDX-License-Identifier: Apache-2.0
#include "affinity/memory/memory_keeper.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <memory>
#include <utility>

#include "affinity/board/board.hpp"
#include "affinity/line/line.hpp"

namespace ka::memory {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kLatest = std::chrono::hours(1);
constexpr int kShare = 5000;  ///< reading takes at most this fraction of the time, for all VMs

/// With one memory node there is nowhere else: only the amounts shown grow old.
nanoseconds until_next_reading(const policy::Topology& machine, nanoseconds elapsed,
                               std::size_t sandboxes, nanoseconds pause) {
  if (machine.nodes().size() <= 1) return kLatest;
  const auto share = elapsed * kShare * static_cast<nanoseconds::rep>(sandboxes);
  return std::min(std::max(share, pause), kLatest);
}

}  // namespace

MemoryKeeper::MemoryKeeper(boost::asio::io_context& io, line::Line& line, board::Board& board,
                           MemoryJobs& jobs, const base::Clock& clock)
    : io_(io),
      line_(line),
      board_(board),
      jobs_(jobs),
      clock_(clock),
      subscription_(board.feed().subscribe(
          [this](const board::Notification& notification) { handle(notification); })) {}

/// Called from within the line: what follows from it is done later.
void MemoryKeeper::handle(const board::Notification& notification) {
  boost::asio::post(io_, [this, id = notification.sandbox] {
    if (id.empty()) {
      refresh();
    } else {
      update(id);
    }
  });
}

void MemoryKeeper::refresh_now(const std::string& id) {
  const auto found = kept_.find(id);
  const bool is_busy = found != kept_.end() && found->second.due == base::Clock::Time::max();
  if (found != kept_.end() && !is_busy) found->second.due = {};
  update(id);
}

void MemoryKeeper::refresh() {
  for (const std::string& id : line_.node().sandbox_ids()) update(id);
}

void MemoryKeeper::update(const std::string& id) {
  const auto view = line_.node().view(id);
  if (!view) {
    if (kept_.erase(id) > 0) jobs_.cancel(id);
    return;
  }
  if (!view->pod.vmm) return;
  const Request request{*view->pod.vmm, view->plan.mems, view->moves_memory()};
  const auto found = kept_.find(id);
  const bool changed = found == kept_.end() || found->second.request != request;
  if (changed) kept_[id] = {.request = request};
  if (changed || found->second.due <= clock_.now()) submit(id, request);
}

/// No new request while one is pending, unless the target changed.
void MemoryKeeper::submit(const std::string& id, const Request& request) {
  kept_[id].due = base::Clock::Time::max();
  jobs_.submit({id, request.vmm, request.mems, request.move,
                std::make_shared<const policy::Topology>(line_.node().topology)});
}

void MemoryKeeper::record(const std::string& id, board::MemoryView view, nanoseconds elapsed) {
  const auto found = kept_.find(id);
  if (found == kept_.end()) return;
  Kept& kept = found->second;
  if (!view.moving) {
    const bool still = kept.request.move &&
                       view.plan.verdict != policy::plan::MemoryVerdict::kInPlace &&
                       view.plan.verdict != policy::plan::MemoryVerdict::kAnywhere;
    if (still) kept.backoff.next();
    if (!still) kept.backoff.reset();
    kept.due = clock_.now() + until_next_reading(line_.node().topology, elapsed, kept_.size(),
                                                 kept.backoff.pause());
  }
  board_.set_memory(id, std::move(view));
}

}  // namespace ka::memory
