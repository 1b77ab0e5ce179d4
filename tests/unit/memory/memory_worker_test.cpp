// SPDX-License-Identifier: Apache-2.0
#include "affinity/memory/memory_worker.hpp"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>

#include "tests/catch.hpp"
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
