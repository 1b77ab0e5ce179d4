// SPDX-License-Identifier: Apache-2.0
// What is watched of each sandbox between events: its VMM's life, its cgroup's cpuset, its monitor,
// and for a short time after an event the sandbox as a whole, because Kata plugs vCPUs right after
// it has updated a container.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "affinity/board/feed.hpp"
#include "affinity/host/cpuset_watch.hpp"
#include "affinity/line/views.hpp"
#include "base/clock.hpp"
#include "base/log/log.hpp"
#include "base/rpc/timer.hpp"
#include "vmm/facts/facts.hpp"
#include "vmm/facts/monitor.hpp"

namespace ka::board {
class Board;
}
namespace ka::line {
class Line;
}

namespace ka::watches {

/// Must outlive the running of its io_context. Handlers find a sandbox by its id, never by address:
/// it may be gone by the time they run.
class Watches {
 public:
  /// `io`, `line`, `board`, `log` and `clock` must outlive it. Subscribes to the feed of `board`.
  /// `cgroups_written` is called after the line has handled it.
  Watches(boost::asio::io_context& io, line::Line& line, board::Board& board, vmm::Roots roots,
          std::function<void()> cgroups_written, const log::Log& log, const base::Clock& clock);

  /// Follows what changed without an event (a VMM that was moved to another cgroup).
  /// What could not be watched is tried again.
  void refresh();

 private:
  /// Of one VMM.
  ///
  /// | from      | to        | when                                           |
  /// |-----------|-----------|------------------------------------------------|
  /// | kSearched | kOpen     | its socket was found                           |
  /// | kSearched | kRefused  | what was found must not be used                |
  /// | any       | kSearched | the VMM is another, or a source names a socket |
  enum class MonitorState { kSearched, kOpen, kRefused };

  struct Watch {
    Watch(boost::asio::io_context& io, const base::Clock& clock)
        : exit(io), next_recheck(io, clock) {}

    policy::ProcessId vmm;
    boost::asio::posix::stream_descriptor exit;  ///< a pidfd
    std::string cgroup;
    vmm::Probe probe;  ///< by which the monitor is found
    MonitorState monitor_state = MonitorState::kSearched;
    std::unique_ptr<vmm::Monitor> monitor;  ///< null unless kOpen
    int failures = 0;                       ///< of the monitor, since it last answered
    std::size_t threads = 0;                ///< when the monitor was last asked
    rpc::Timer next_recheck;
    base::Clock::Time event;
    std::size_t stage = 0;
  };

  void handle(const board::Notification& notification);
  /// `view`: the sandbox as it is now; absent: it has ended.
  void update(const std::string& id, const std::optional<line::SandboxView>& view);
  void watch_exit(const std::string& id, Watch& watch);
  void handle_exit(const std::string& id, const policy::ProcessId& vmm);
  void update_monitor(const std::string& id, Watch& watch, const policy::ledger::PodRecord& pod);
  static void search_monitor(Watch& watch);
  vmm::MonitorHandlers monitor_handlers(const std::string& id);
  void monitor_failed(const std::string& id, const base::Error& error);
  base::Result<void> open_cgroups();
  base::Result<void> watch_only(const std::set<std::string>& directories);
  void watch_cgroups_soon();
  void watch_cgroups();
  void close_cgroups(const base::Error& error);
  void wait_for_cgroups();

  void begin_rechecks(const std::string& id);
  void wait_to_recheck(const std::string& id, Watch& watch);
  void recheck(const std::string& id);

  boost::asio::io_context& io_;
  line::Line& line_;
  board::Board& board_;
  vmm::Roots roots_;
  std::function<void()> cgroups_written_;
  const log::Log& log_;
  const base::Clock& clock_;
  std::optional<host::CpusetWatch> cgroups_;  ///< absent while inotify cannot be had
  boost::asio::posix::stream_descriptor cgroups_readable_;
  bool cgroups_stale_ = false;  ///< watch_cgroups() is to come
  std::map<std::string, Watch> watches_;
  board::Subscription subscription_;
};

}  // namespace ka::watches
