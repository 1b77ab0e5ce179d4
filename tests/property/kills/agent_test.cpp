// SPDX-License-Identifier: Apache-2.0
// kill -9 of the guest agent: before and after each write to a file and to a thread's mask. The
// next agent completes what is still wanted, and a release leaves the guest as it was.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/property/kills/difference.hpp"
#include "tests/scissors.hpp"
#include "tests/unit/guest-agent/guest_scene.hpp"

namespace {

/// The agent's files have no interface: its calls of the C library are cut.
ka::tests::Scissors scissors;

}  // namespace

/// Kernel files are opened in order to be written: before that they are as they were.
extern "C" int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if ((flags & O_TRUNC) != 0 && (flags & O_CREAT) == 0) scissors.snip();
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

/// Also of a record, which has not replaced the one before yet.
extern "C" ssize_t write(int file, const void* data, size_t size) {
  const auto written = ::syscall(SYS_write, file, data, size);
  scissors.snip();
  return written;
}

using namespace ka;
using policy::GuestCpuSet;
using tests::GuestScene;
using tests::spec_of;

namespace {

namespace fs = std::filesystem;

const std::string kId(64, 'a');
constexpr int kAgent = 50;  ///< kata-agent
constexpr const char* kDriver = "sys/devices/system/cpu/cpuidle/current_driver";
constexpr const char* kPollTime = "sys/module/haltpoll/parameters/guest_halt_poll_ns";
constexpr const char* kWorkqueues = "sys/devices/virtual/workqueue/cpumask";

class CutThreads final : public agent::Calls {
 public:
  explicit CutThreads(const tests::FakeThreads& threads) : threads_(threads) {}

  std::optional<GuestCpuSet> affinity(int tid) const override { return threads_.affinity(tid); }
  int set_affinity(int tid, const GuestCpuSet& cpus) const override {
    return scissors.around([&] { return threads_.set_affinity(tid, cpus); });
  }

 private:
  const tests::FakeThreads& threads_;
};

/// A container with a quota, and what runs beside it, each with CPUs of its own: some are what
/// the agent gives to others.
struct Guest : GuestScene {
  explicit Guest(Cgroups kind) : GuestScene(kind) {
    cpus({0, 1, 2, 3});
    cgroup("kubepods/" + kId);
    process(60, "kubepods/" + kId, "app");
    if (kind == Cgroups::kV1) {
      for (const std::string& at : {std::string("kubepods"), "kubepods/" + kId}) {
        files.write("cgroup/" + at + "/cpuset.cpus", "0-3\n");
        files.write("cgroup/" + at + "/cpuset.mems", "0\n");
      }
    }
    files.write("cgroup/kubepods/" + kId + "/cpu.max", "50000 20000\n");
    add_masks();
    if (kind == Cgroups::kV2) add_services();
    before = text();
    start();
  }

  void add_masks() {
    for (const auto& [irq, list] :
         {std::pair{"24", "0-3\n"}, {"25", "2\n"}, {"26", "0-1\n"}, {"27", "0\n"}}) {
      files.write("proc/irq/" + std::string(irq) + "/smp_affinity_list", list);
    }
    files.write("proc/irq/default_smp_affinity", "e\n");
    files.write(kWorkqueues, "3\n");
    files.write(kDriver, "haltpoll\n");
    files.write(kPollTime, "0\n");
    for (const auto& [pid, own] : std::vector<std::pair<int, GuestCpuSet>>{
             {20, {2}}, {21, {0, 1}}, {22, {0}}, {23, {0, 1, 2, 3}}}) {
      const std::string base = "proc/" + std::to_string(pid);
      files.write(base + "/comm", "kworker/u8:0\n");
      files.write(base + "/stat", std::to_string(pid) +
                                      " (kworker/u8:0) S 2 0 0 0 -1 2097216 0 0 0 0 0 0 0 0 20 0 "
                                      "1 0 77 0\n");
      threads.cpus[pid] = own;
    }
  }
  void add_services() {
    const std::string service = "system.slice/kata-agent.service";
    for (const std::string name : {"init.scope", "user.slice", "kubepods"}) cgroup(name);
    cgroup(service);
    files.write("cgroup/user.slice/cpuset.cpus", "0-2\n");
    files.write("cgroup/init.scope/cpuset.cpus", "0-1\n");
    process(kAgent, service, "kata-agent");
    files.write("proc/50/cgroup", "0::/" + service + '\n');
  }

  /// An agent that was killed, or none was there.
  void start() {
    scissors.put_away();
    agent.reset();
    agent.emplace(roots(), calls);
  }
  void request(const policy::GuestSpec& spec) {
    agent->apply(spec);
    while (agent->run_background()) {
    }
  }

  /// All that the agent may have changed. A cpuset controller that is enabled limits nobody.
  std::string text() const {
    std::vector<fs::path> paths{path(kPollTime), path(kWorkqueues)};
    for (const char* top : {"cgroup", "proc/irq"}) {
      for (const auto& entry : fs::recursive_directory_iterator(path(top))) {
        if (entry.path().filename() != "cgroup.subtree_control") paths.push_back(entry.path());
      }
    }
    std::ranges::sort(paths);
    std::ostringstream text;
    for (const fs::path& file : paths) {
      const std::string name = file.lexically_relative(files.path());
      text << name << ": " << (fs::is_directory(file) ? "" : read(name)) << '\n';
    }
    for (const auto& [tid, own] : threads.cpus) {
      text << tid << ": " << policy::format_list(own) << '\n';
    }
    return text.str();
  }
  void check_same(const std::string& other) const {
    const std::string now = text();
    CHECK(tests::difference(now, other) == "");
    CHECK(tests::difference(other, now) == "");
  }
  void check_as_before() const {
    check_same(before);
    CHECK((!fs::exists(path("run/kata-affinity")) || fs::is_empty(path("run/kata-affinity"))));
  }

  CutThreads calls{threads};
  std::string before;
  std::optional<agent::Agent> agent;
};

policy::GuestSpec none() { return {.move_interrupts = false, .release = true}; }

policy::GuestSpec two() {
  auto spec = spec_of(4, {2, 3}, kId);
  spec.containers.front().lift_quota = true;
  spec.halt_poll = true;
  return spec;
}

policy::GuestSpec three() { return spec_of(4, {1, 2, 3}, kId); }

using Request = policy::GuestSpec (*)();

/// What the host wanted, and what it wants when the agent is killed.
struct Way {
  Request from, to;
};

constexpr std::array kWays = {Way{none, two}, Way{two, three}, Way{three, two}, Way{two, none},
                              Way{three, none}};
constexpr int kFewest = 20;  ///< places on each of these ways

/// Kills an agent at each place of the way, until it comes to the end alive. `then` has a guest
/// with the next agent.
template <typename Then>
int kill_everywhere(GuestScene::Cgroups kind, const Way& way, const Then& then) {
  for (int place = 0;; ++place) {
    CAPTURE(place);
    Guest guest(kind);
    guest.request(way.from());
    scissors.set(place);
    try {
      guest.request(way.to());
      scissors.put_away();
      return place;
    } catch (const tests::Killed&) {
      guest.start();
      then(guest);
    }
  }
}

std::string planned(GuestScene::Cgroups kind, const Way& way) {
  Guest guest(kind);
  guest.request(way.from());
  guest.request(way.to());
  return guest.text();
}

GuestScene::Cgroups each_kind() {
  return GENERATE(GuestScene::Cgroups::kV2, GuestScene::Cgroups::kV1, GuestScene::Cgroups::kOther);
}

}  // namespace

TEST_CASE("each request changes the guest, and a release leaves it as it was") {
  Guest guest(each_kind());
  for (const Request request : {two, three, two}) {
    guest.request(request());
    CHECK(guest.text() != guest.before);
  }
  guest.request(none());
  guest.check_as_before();
}

TEST_CASE("killed at any write, the next agent's release leaves the guest as it was") {
  const auto kind = each_kind();
  for (std::size_t i = 0; i < kWays.size(); ++i) {
    CAPTURE(i);
    const int places = kill_everywhere(kind, kWays.at(i), [](Guest& guest) {
      guest.request(none());
      guest.check_as_before();
    });
    CHECK(places > kFewest);
  }
}

TEST_CASE("killed at any write, the next agent brings the guest to what is still wanted") {
  const auto kind = each_kind();
  for (std::size_t i = 0; i < kWays.size(); ++i) {
    CAPTURE(i);
    const Way& way = kWays.at(i);
    const std::string there = planned(kind, way);
    kill_everywhere(kind, way, [&](Guest& guest) {
      guest.request(way.to());
      guest.check_same(there);
      guest.request(none());
      guest.check_as_before();
    });
  }
}
