// SPDX-License-Identifier: Apache-2.0
#include "affinity/memory/memory_worker.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>

#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"
#include "tests/test_clock.hpp"

using namespace ka;
using memory::MemoryJob;
using memory::MemoryWorker;

namespace {

struct Report {
  std::string sandbox;
  board::MemoryView view;
};

/// A worker on the machine's own /proc; the first thing that it tells.
class Scene {
 public:
  Report first() { return report_.get_future().get(); }

  static MemoryJob job(const std::string& sandbox) {
    const auto stat = base::ProcFs().stat(::getpid());
    return {sandbox,
            {::getpid(), stat->start_time},
            *policy::parse_list<policy::NodeTag>("0"),
            true,
            std::make_shared<const policy::Topology>(
                *policy::Topology::make({{0, 0, 0, 0, 0}, {1, 1, 1, 1, 1}}))};
  }

 private:
  const tests::TestClock clock_;
  std::promise<Report> report_;
  bool is_first_ = true;  // the worker's thread alone uses it

 public:
  MemoryWorker worker{clock_, base::ProcFs(), "/sys",
                      [this](const std::string& sandbox, board::MemoryView view, auto) {
                        if (std::exchange(is_first_, false)) {
                          report_.set_value({sandbox, std::move(view)});
                        }
                      }};
};

const bool kHasNumaMaps = std::filesystem::exists("/proc/self/numa_maps");

}  // namespace

TEST_CASE("where a process's memory lies is reported") {
  if (!kHasNumaMaps) return;  // a kernel without NUMA
  Scene scene;
  scene.worker.submit(Scene::job("s1"));
  const Report report = scene.first();
  CHECK(report.sandbox == "s1");
  CHECK(report.view.problem.empty());
  REQUIRE(report.view.facts.parts.size() > 0);
  std::uint64_t bytes = 0;
  for (const auto& [node, number] : report.view.facts.parts[0].placed) bytes += number;
  CHECK(bytes > 100 * 1024);
}

TEST_CASE("another process, or one that has ended, is not reported") {
  if (!kHasNumaMaps) return;
  Scene scene;
  MemoryJob reused = Scene::job("reused");
  reused.vmm.start_time += 1;
  scene.worker.submit(reused);
  MemoryJob gone = Scene::job("gone");
  gone.vmm.pid = 0x3fffffff;
  scene.worker.submit(gone);
  scene.worker.submit(Scene::job("s1"));
  CHECK(scene.first().sandbox == "s1");
}

namespace {

constexpr std::size_t kSize = 3 << 20;

/// 3 MiB of this process on node 0 that are to move to node 1, by files in a directory. In the
/// kernel there is no node 1: all steps are made, and nothing moves.
class Movable {
 public:
  Movable() {
    std::memset(memory_, 1, kSize);
    char range[64];
    const auto start = reinterpret_cast<std::uintptr_t>(memory_);
    std::snprintf(range, sizeof range, "%zx-%zx", start, start + kSize);
    const std::string maps = range;
    dir_.write(of_process("numa_maps"), maps.substr(0, maps.find('-')) +
                                            " default anon=768 dirty=768 N0=768 "
                                            "kernelpagesize_kB=4\n");
    dir_.write(of_process("maps"), maps + " rw-p 00000000 00:00 0\n");
    dir_.write(of_process("status"), "Name:\ttest\nMems_allowed_list:\t0-1\n");
    for (const std::string node : {"node0", "node1"}) {
      dir_.write("sys/devices/system/node/" + node + "/meminfo", "Node 0 MemFree: 9999999 kB\n");
    }
    dir_.write("sys/devices/system/node/has_memory", "0-1\n");
    begin_at(500);
  }
  ~Movable() { ::munmap(memory_, kSize); }
  Movable(const Movable&) = delete;
  Movable& operator=(const Movable&) = delete;

  void begin_at(int start_time) const {
    dir_.write(of_process("task/" + std::to_string(::getpid()) + "/stat"),
               std::to_string(::getpid()) + " (test) S 1 1 1 0 -1 0 1 0 0 0 0 0 0 0 20 0 1 0 " +
                   std::to_string(start_time) + " 2 3 4 0\n");
  }

  MemoryJob job() const {
    MemoryJob job = Scene::job("s1");
    job.vmm.start_time = 500;
    job.mems = {1};
    return job;
  }

  base::ProcFs proc() const { return base::ProcFs(dir_.path() / "proc"); }
  std::filesystem::path sys() const { return dir_.path() / "sys"; }

 private:
  static std::string of_process(const std::string& file) {
    return "proc/" + std::to_string(::getpid()) + '/' + file;
  }

  tests::TempDir dir_;
  void* memory_ =
      ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
};

/// Acts when it is read for the fifth time: the worker does that right after its first step.
class ActingClock final : public base::Clock {
 public:
  explicit ActingClock(std::function<void()> act) : act_(std::move(act)) {}
  Time now() const override {
    if (++reads_ == 5) act_();
    return Time(std::chrono::hours(1));
  }

 private:
  std::function<void()> act_;
  mutable int reads_ = 0;
};

}  // namespace

TEST_CASE("a process that got the VMM's number during a step ends the move, and is reported") {
  for (const int start_time : {500, 501}) {
    const Movable movable;
    const ActingClock clock([&] { movable.begin_at(start_time); });
    std::vector<board::MemoryView> views;
    std::promise<void> ended;
    MemoryWorker worker(clock, movable.proc(), movable.sys(),
                        [&](const std::string& sandbox, const board::MemoryView& view, auto) {
                          if (sandbox == "next") return ended.set_value();
                          views.push_back(view);
                        });
    worker.submit(movable.job());
    MemoryJob next = movable.job();
    next.sandbox = "next";
    next.vmm.start_time = static_cast<std::uint64_t>(start_time);
    next.move = false;
    worker.submit(next);
    ended.get_future().wait();
    const board::MemoryView& last = views.back();
    if (start_time == 500) {
      CHECK(last.moved + last.failed == kSize);
      CHECK(last.problem.empty());
    } else {
      CHECK(last.moved + last.failed < kSize);
      CHECK(last.problem.find("process that has its number now") != std::string::npos);
    }
  }
}

TEST_CASE("a worker ends immediately, whatever is queued") {
  constexpr int kJobs = 1000;
  std::atomic<int> reports = 0;
  {
    const tests::TestClock clock;
    MemoryWorker worker(clock, base::ProcFs(), "/sys", [&](const auto&...) { ++reports; });
    for (int i = 0; i < kJobs; ++i) worker.submit(Scene::job("s" + std::to_string(i)));
  }
  CHECK(reports < kJobs);
}
