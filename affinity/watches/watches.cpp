// SPDX-License-Identifier: Apache-2.0
#include "affinity/watches/watches.hpp"

#include <array>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <chrono>
#include <set>
#include <utility>

#include "affinity/board/board.hpp"
#include "affinity/line/line.hpp"
#include "base/descriptors.hpp"
#include "base/pidfd.hpp"
#include "vmm/monitors/table.hpp"
#include "vmm/threads.hpp"

namespace ka::watches {
namespace {

using boost::system::error_code;

/// After an event: when to observe again.
constexpr std::array<std::chrono::milliseconds, 3> kRechecks{std::chrono::milliseconds(100),
                                                             std::chrono::milliseconds(500),
                                                             std::chrono::milliseconds(2000)};

/// Events after which a VM changes by itself.
bool needs_rechecks(board::NotificationKind kind) {
  using enum board::NotificationKind;
  return kind == kSandboxUpdated || kind == kSandboxAdopted || kind == kUnseen ||
         kind == kContainerUpdated || kind == kContainerExited || kind == kContainerRemoved;
}

/// Nothing of a program in a container, whose owner chose it.
std::vector<std::string> command_line_of(const vmm::Roots& roots, const policy::ProcessId& vmm) {
  if (vmm::is_contained(roots, vmm.pid)) return {};
  return vmm::arguments_of(roots, vmm).value_or(std::vector<std::string>{});
}

}  // namespace

Watches::Watches(boost::asio::io_context& io, line::Line& line, board::Board& board,
                 vmm::Roots roots, std::function<void()> cgroups_written, const log::Log& log,
                 const base::Clock& clock)
    : io_(io),
      line_(line),
      board_(board),
      roots_(std::move(roots)),
      cgroups_written_(std::move(cgroups_written)),
      log_(log),
      clock_(clock),
      cgroups_readable_(io),
      subscription_(board.feed().subscribe(
          [this](const board::Notification& notification) { handle(notification); })) {
  watch_cgroups_soon();
}

base::Result<void> Watches::open_cgroups() {
  auto watch = host::CpusetWatch::open();
  if (!watch) return unexpected(watch.error());
  base::Fd readable = base::duplicate(watch->fd());
  if (!readable) return base::fail_errno(errno, "inotify");
  error_code failed;
  cgroups_readable_.assign(readable.get(), failed);
  if (failed) return base::fail_errno(failed.value(), "inotify on the event loop");
  readable.release();
  cgroups_.emplace(std::move(*watch));
  wait_for_cgroups();
  return {};
}

/// Called from within the line: what follows from it is done later.
void Watches::handle(const board::Notification& notification) {
  if (notification.sandbox.empty()) return;
  const bool rechecks = needs_rechecks(notification.kind);
  boost::asio::post(io_, [this, id = notification.sandbox, rechecks] {
    update(id, line_.node().view(id));
    if (rechecks) begin_rechecks(id);
  });
}

void Watches::refresh() {
  for (const std::string& id : line_.node().sandbox_ids()) {
    const auto view = line_.node().view(id);
    update(id, view);
    const auto found = watches_.find(id);
    if (!view || found == watches_.end()) continue;
    if (std::exchange(found->second.threads, view->threads.size()) != view->threads.size()) {
      if (found->second.monitor) found->second.monitor->refresh();
    }
  }
  watch_cgroups();
}

void Watches::update(const std::string& id, const std::optional<line::SandboxView>& view) {
  if (!view) {
    if (watches_.erase(id) > 0) watch_cgroups_soon();
    return;
  }
  Watch& watch = watches_.try_emplace(id, io_, clock_).first->second;
  const policy::ProcessId vmm = view->pod.vmm.value_or(policy::ProcessId{});
  if (std::exchange(watch.vmm, vmm) != vmm) {
    error_code ignored;
    watch.exit.close(ignored);
    watch.probe = {.sandbox = id, .command_line = command_line_of(roots_, vmm), .run = roots_.run};
    search_monitor(watch);
  }
  if (!watch.exit.is_open()) watch_exit(id, watch);
  update_monitor(id, watch, view->pod);
  if (std::exchange(watch.cgroup, view->cgroup) != view->cgroup) watch_cgroups_soon();
}

/// A pidfd stays with its process, which is the VMM if it still has the number once the pidfd is
/// open. What fails now is retried with the next observation.
void Watches::watch_exit(const std::string& id, Watch& watch) {
  const policy::ProcessId vmm = watch.vmm;
  base::Fd process = base::open_pidfd(vmm.pid);
  const bool ended = !process && errno == ESRCH;
  if (!process && !ended) return;
  const auto now = vmm::identify(roots_, vmm.pid);
  const bool is_other = now && *now != vmm;
  if (ended || is_other)
    return boost::asio::post(io_, [this, id, vmm] { line_.vmm_ended(id, vmm); });
  if (!now && !is_gone(now)) return;
  watch.exit.assign(process.release());
  watch.exit.async_wait(boost::asio::posix::descriptor_base::wait_read,
                        [this, id, vmm](const error_code& error) {
                          if (!error) handle_exit(id, vmm);
                        });
}

/// The pidfd decides: Asio also ends a wait that it could not begin, without an error.
void Watches::handle_exit(const std::string& id, const policy::ProcessId& vmm) {
  const auto found = watches_.find(id);
  if (found == watches_.end() || found->second.vmm != vmm) return;
  auto& pidfd = found->second.exit;
  error_code ignored;
  if (base::has_ended(pidfd.native_handle())) {
    line_.vmm_ended(id, vmm);
  } else {
    pidfd.close(ignored);
  }
}

/// Once for all that change in one turn of the loop: many sandboxes may come at once.
void Watches::watch_cgroups_soon() {
  if (std::exchange(cgroups_stale_, true)) return;
  boost::asio::post(io_, [this] { watch_cgroups(); });
}

void Watches::watch_cgroups() {
  cgroups_stale_ = false;
  std::set<std::string> directories;
  for (const auto& [id, watch] : watches_) {
    if (!watch.cgroup.empty()) directories.insert(watch.cgroup);
  }
  const auto watched = watch_only(directories);
  board_.set_late(policy::ledger::Source::kCgroup,
                  watched ? std::nullopt : std::optional(watched.error()));
}

base::Result<void> Watches::watch_only(const std::set<std::string>& directories) {
  if (!cgroups_) {
    if (const auto opened = open_cgroups(); !opened) return unexpected(opened.error());
  }
  return cgroups_->watch_only(directories);
}

/// The next refresh() has another inotify, and watches all again.
void Watches::close_cgroups(const base::Error& error) {
  error_code ignored;
  cgroups_readable_.close(ignored);
  cgroups_.reset();
  board_.set_late(policy::ledger::Source::kCgroup, error);
}

void Watches::wait_for_cgroups() {
  cgroups_readable_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                               [this](const error_code& error) {
                                 if (error) return;
                                 const auto written = cgroups_->drain();
                                 if (!written) return close_cgroups(written.error());
                                 for (const auto& directory : *written) {
                                   line_.cgroup_written(directory);
                                 }
                                 if (!written->empty()) cgroups_written_();
                                 wait_for_cgroups();
                               });
}

vmm::MonitorHandlers Watches::monitor_handlers(const std::string& id) {
  return {.facts =
              [this, id](vmm::MonitorFacts facts) {
                const auto found = watches_.find(id);
                if (found != watches_.end()) found->second.failures = 0;
                line_.set_monitor_facts(id, std::move(facts));
              },
          .failed = [this, id](const base::Error& error) { monitor_failed(id, error); }};
}

void Watches::search_monitor(Watch& watch) {
  watch.monitor.reset();
  watch.monitor_state = MonitorState::kSearched;
}

/// Its socket may come after the VMM, and may not be seen just now: it is searched whenever
/// something happens to the sandbox.
void Watches::update_monitor(const std::string& id, Watch& watch,
                             const policy::ledger::PodRecord& pod) {
  watch.probe.by_operator = pod.source == policy::ledger::Source::kApi;
  if (watch.probe.named_socket != pod.qmp_socket) {
    watch.probe.named_socket = pod.qmp_socket;
    search_monitor(watch);
  }
  if (watch.monitor_state != MonitorState::kSearched) return;
  const auto found = vmm::find_monitor(watch.probe);
  if (!found) return;
  auto monitor = found->kind->start(io_, clock_, {.socket = found->socket}, monitor_handlers(id));
  if (monitor) {
    watch.failures = 0;
    watch.monitor = std::move(*monitor);
    watch.monitor_state = MonitorState::kOpen;
  } else if (monitor.error().code == base::ErrorCode::kInvalid) {
    watch.monitor_state = MonitorState::kRefused;
    log_.warning("VMM monitor not used", {{"sandbox", id}, {"reason", monitor.error().message}});
  } else {
    monitor_failed(id, monitor.error());
  }
}

/// A single failure is normal when a VM ends. More are logged once, until it answers again.
void Watches::monitor_failed(const std::string& id, const base::Error& error) {
  const auto found = watches_.find(id);
  if (found == watches_.end() || ++found->second.failures != 2) return;
  log_.warning("VMM monitor not responding; identifying vCPUs without it",
               {{"sandbox", id}, {"reason", error.message}});
}

void Watches::begin_rechecks(const std::string& id) {
  const auto found = watches_.find(id);
  if (found == watches_.end()) return;
  found->second.event = clock_.now();
  found->second.stage = 0;
  wait_to_recheck(id, found->second);
}

void Watches::wait_to_recheck(const std::string& id, Watch& watch) {
  watch.next_recheck.at(watch.event + kRechecks.at(watch.stage), [this, id] { recheck(id); });
}

void Watches::recheck(const std::string& id) {
  line_.refresh(id);
  const auto found = watches_.find(id);
  if (found == watches_.end()) return;
  Watch& watch = found->second;
  if (watch.monitor) watch.monitor->refresh();
  if (++watch.stage < kRechecks.size()) wait_to_recheck(id, watch);
}

}  // namespace ka::watches
