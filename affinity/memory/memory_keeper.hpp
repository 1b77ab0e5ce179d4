// SPDX-License-Identifier: Apache-2.0
// Schedules the reading of sandboxes' memory: at once when the nodes change, otherwise
// periodically, less often the longer a reading takes.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <map>
#include <string>

#include "affinity/board/feed.hpp"
#include "affinity/board/views.hpp"
#include "affinity/memory/memory_worker.hpp"
#include "base/backoff.hpp"
#include "base/clock.hpp"

namespace ka::board {
class Board;
}
namespace ka::line {
class Line;
}

namespace ka::memory {

/// Must outlive the running of its io_context.
class MemoryKeeper {
 public:
  /// All references must outlive it. Subscribes to the feed of `board`. The worker that runs
  /// the jobs answers with record().
  MemoryKeeper(boost::asio::io_context& io, line::Line& line, board::Board& board, MemoryJobs& jobs,
               const base::Clock& clock);

  /// Reads one sandbox now: what held its memory may have changed.
  void refresh_now(const std::string& id);

  /// Reads what is due.
  void refresh();

  /// The result of a job, intermediate or final. `elapsed`: how long reading kept the kernel busy.
  void record(const std::string& id, board::MemoryView view, std::chrono::nanoseconds elapsed);

 private:
  /// What was last asked for a sandbox.
  struct Request {
    policy::ProcessId vmm;
    policy::NodeSet mems;
    bool move = false;

    bool operator==(const Request&) const = default;
  };
  struct Kept {
    Request request;
    base::Clock::Time due{};
    /// Grows with moves, one after the other, after which memory was still elsewhere.
    base::Backoff backoff{std::chrono::seconds(30), std::chrono::hours(1)};
  };

  void handle(const board::Notification& notification);
  void update(const std::string& id);
  void submit(const std::string& id, const Request& request);

  boost::asio::io_context& io_;
  line::Line& line_;
  board::Board& board_;
  MemoryJobs& jobs_;
  const base::Clock& clock_;
  std::map<std::string, Kept> kept_;
  board::Subscription subscription_;
};

}  // namespace ka::memory
