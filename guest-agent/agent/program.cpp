// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/program.hpp"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/files.hpp"
#include "base/signals.hpp"
#include "guest-agent/agent/agent.hpp"
#include "guest-agent/agent/connections.hpp"
#include "guest-agent/agent/hook.hpp"
#include "guest-agent/agent/loop.hpp"
#include "guest-agent/agent/openings.hpp"
#include "guest-agent/agent/sockets.hpp"
#include "guest-agent/agent/tree_watch.hpp"

namespace ka::agent {
namespace {

/// How long a thread that was born elsewhere stays there, where there are no cpusets; and how long
/// it takes until what could not be opened, or watched, is tried again.
constexpr long kPollEveryMs = 200;

/// It works for milliseconds at a time, and the host waits for it: a guest whose vCPUs are all busy
/// would not let it answer in time.
constexpr int kNice = -20;

class Program {
 public:
  explicit Program(const Options& options)
      : options_(options),
        agent_(options_.roots, calls_),
        connections_(
            loop_, agent_, [this] { finish_turn(); },
            [this](Openings::Open open, const base::Error& failed) {
              retry(std::move(open), failed);
            }),
        timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {}

  int run() {
    if (!timer_ || !loop_.add(timer_.get(), EPOLLIN, [this](std::uint32_t) { on_timer(); })) {
      std::perror("kata-affinity-agent: cannot start");
      return 1;
    }
    open_all();
    finish_turn();
    while (loop_.turn(busy_ ? Loop::Wait::kNot : Loop::Wait::kLong)) {
      if (busy_) finish_turn();
    }
    std::perror("kata-affinity-agent: epoll");
    return 1;
  }

 private:
  void open_all() {
    openings_.add([this] { return connections_.listen(listen_vsock(options_.port)); });
    openings_.add([this] { return connections_.listen(listen_unix(socket_of(options_))); });
    openings_.add([this] { return watch_uevents(); });
    openings_.add([this] { return watch_cgroups(); });
    connections_.use_serial(open_serial(options_.roots, options_.serial_port));
  }

  void retry(Openings::Open open, const base::Error& failed) {
    openings_.add_failed(std::move(open), failed);
    finish_turn();
  }

  base::Result<void> watch_uevents() {
    auto opened = open_uevents();
    if (!opened) return unexpected(opened.error());
    uevents_ = *std::move(opened);
    return loop_.add(uevents_.get(), EPOLLIN, [this](std::uint32_t) { on_uevents(); });
  }

  base::Result<void> watch_cgroups() {
    if (auto opened = cgroups_.open(); !opened) return opened;
    return loop_.add(cgroups_.fd(), EPOLLIN, [this](std::uint32_t) { on_cgroups(); });
  }

  void on_uevents() {
    const Uevents news = read_uevents(uevents_.get());
    if (news.ports && !connections_.has_serial()) {
      connections_.use_serial(open_serial(options_.roots, options_.serial_port));
    }
    if (!news.cpus) return;
    agent_.cpus_changed();
    finish_turn();
  }

  void on_cgroups() {
    const auto news = cgroups_.drain();
    if (!news) return rewatch_cgroups(news.error());
    if (!news->changed && agent_.has_given(news->cpusets)) return;
    agent_.cgroups_changed();
    finish_turn();
  }

  /// Until they are watched again the timer looks at them.
  void rewatch_cgroups(const base::Error& failed) {
    loop_.remove(cgroups_.fd());
    cgroups_.close();
    agent_.cgroups_changed();
    retry([this] { return watch_cgroups(); }, failed);
  }

  void on_measured() {
    const int fd = agent_.meter().fd();
    if (!agent_.meter().read()) return;
    loop_.remove(fd);
    metering_ = false;
    connections_.notify();
  }

  void watch_meter() {
    const int fd = agent_.meter().fd();
    if (fd < 0 || metering_) return;
    metering_ = loop_.add(fd, EPOLLIN, [this](std::uint32_t) { on_measured(); }).has_value();
  }

  void on_timer() {
    std::uint64_t ticks = 0;
    if (::read(timer_.get(), &ticks, sizeof ticks) != sizeof ticks) {
      if (errno == EAGAIN) return;
      set_timer();  // which makes it wait again
    }
    openings_.retry();
    if (!cgroups_.is_complete()) agent_.cgroups_changed();
    agent_.poll();
    finish_turn();
  }

  /// The agent ran: notifies waiting hosts, and watches the current cgroups.
  void finish_turn() {
    watch_meter();
    busy_ = agent_.run_background();
    bool is_unwatched = !cgroups_.is_complete();
    while (reported_ != agent_.report().generation || places_ != agent_.places_to_watch() ||
           std::exchange(is_unwatched, false)) {
      reported_ = agent_.report().generation;
      connections_.notify();
      places_ = agent_.places_to_watch();
      // A container may have been made in a directory before that was watched.
      if (!cgroups_.watch_only(places_)) continue;
      agent_.cgroups_changed();
      busy_ = true;
    }
    const bool polls = agent_.needs_polling() || !openings_.are_done() || !cgroups_.is_complete();
    if (polls == polling_) return;
    polling_ = polls;
    set_timer();
  }

  void set_timer() const {
    const itimerspec every{.it_interval = {.tv_sec = 0, .tv_nsec = kPollEveryMs * 1000000},
                           .it_value = {.tv_sec = 0, .tv_nsec = kPollEveryMs * 1000000}};
    const itimerspec never{};
    ::timerfd_settime(timer_.get(), 0, polling_ ? &every : &never, nullptr);
  }

  const Options& options_;
  Calls calls_;
  Agent agent_;
  Loop loop_;
  Connections connections_;
  Openings openings_;
  TreeWatch cgroups_;
  base::Fd uevents_;
  base::Fd timer_;
  bool polling_ = false;
  bool metering_ = false;  ///< the meter is on the loop
  bool busy_ = false;      ///< there is background work
  std::uint64_t reported_ = 0;
  std::vector<std::filesystem::path> places_;
};

}  // namespace

int run(const Options& options) {
  const auto socket = socket_of(options);
  std::error_code none;
  std::filesystem::create_directories(socket.parent_path(), none);
  const auto alone = base::lock_file(socket.native() + ".lock");
  if (!alone && alone.error().code == base::ErrorCode::kConflict) {
    std::fputs("kata-affinity-agent: another agent is running\n", stderr);
    return 0;
  }
  base::ignore_write_signals();
  ::setpriority(PRIO_PROCESS, 0, kNice);
  return Program(options).run();
}

}  // namespace ka::agent
