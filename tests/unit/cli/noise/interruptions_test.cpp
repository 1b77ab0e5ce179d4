// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/noise/interruptions.hpp"

#include <random>

#include "tests/catch.hpp"

using namespace ka::cli::noise;

namespace {

constexpr Cause kIrq{CauseKind::kInterrupt, 36}, kSoftirq{CauseKind::kSoftirq, 3};
constexpr Cause task(int tid) { return {CauseKind::kTask, tid}; }

/// One CPU, watched from 0 on.
struct Scene {
  void change(int at, int from, int to) {
    seen.add({4, Nanoseconds(at), from,
              Switch{from, to, "t" + std::to_string(from), "t" + std::to_string(to)}});
  }
  void begin(int at, int running, Cause cause) {
    seen.add({4, Nanoseconds(at), running, Begin{cause, "i"}});
  }
  void end(int at, int running, Cause cause) {
    seen.add({4, Nanoseconds(at), running, End{cause}});
  }
  void lose(std::uint64_t events) { seen.add({4, {}, 0, Lost{events}}); }
  const CpuUsage& cpu() const { return seen.cpus().at(4); }
  const Usage& of(Cause cause) const { return cpu().causes.at(cause); }

  Interruptions seen{{4}, Nanoseconds(0)};
};

}  // namespace

TEST_CASE(
    "a task has the time between its switches, and what runs at the start has it from there") {
  Scene scene;
  scene.change(100, 41, 17);
  scene.change(130, 17, 41);
  scene.change(200, 41, 0);
  scene.seen.finish(Nanoseconds(250));
  CHECK((scene.of(task(41)).count == 2 && scene.of(task(41)).total == Nanoseconds(170)));
  CHECK(scene.of(task(41)).longest == Nanoseconds(100));
  CHECK((scene.of(task(17)).count == 1 && scene.of(task(17)).total == Nanoseconds(30)));
  CHECK(scene.of(task(17)).name == "t17");
  CHECK(scene.cpu().causes.size() == 2);  // idle is no cause
}

TEST_CASE("what is interrupted does not have the time of the interrupt") {
  Scene scene;
  scene.change(10, 0, 41);
  scene.begin(20, 41, kIrq);
  scene.begin(25, 41, kSoftirq);
  scene.end(35, 41, kSoftirq);
  scene.end(40, 41, kIrq);
  scene.change(50, 41, 0);
  scene.seen.finish(Nanoseconds(60));
  CHECK(scene.of(task(41)).total == Nanoseconds(20));
  CHECK(scene.of(kIrq).total == Nanoseconds(10));
  CHECK((scene.of(kSoftirq).total == Nanoseconds(10) && scene.of(kSoftirq).count == 1));
}

TEST_CASE("an interrupt names the task that runs all the time") {
  Scene scene;
  scene.begin(20, 41, kIrq);
  scene.end(30, 41, kIrq);
  scene.seen.finish(Nanoseconds(100));
  CHECK((scene.of(task(41)).count == 1 && scene.of(task(41)).total == Nanoseconds(90)));
}

TEST_CASE("the end of what began before the start counts for nothing") {
  Scene scene;
  scene.end(5, 41, kIrq);
  scene.seen.finish(Nanoseconds(100));
  CHECK((scene.cpu().events == 1 && scene.cpu().causes.empty()));
}

TEST_CASE("a switch that was not reported is counted, and its time only as far as it was seen") {
  Scene scene;
  scene.change(10, 17, 0);
  scene.begin(20, 0, kIrq);
  scene.end(25, 0, kIrq);
  // From idle to 41, unreported.
  scene.begin(40, 41, kSoftirq);
  scene.end(45, 41, kSoftirq);
  scene.change(60, 41, 0);
  scene.change(90, 41, 0);
  scene.seen.finish(Nanoseconds(100));
  CHECK(scene.cpu().missed == 2);
  CHECK((scene.of(task(41)).count == 2 && scene.of(task(41)).total == Nanoseconds(15)));
  CHECK(scene.of(kIrq).total == Nanoseconds(5));
}

TEST_CASE("an interrupt in a task that is ending is the task's") {
  Scene scene;
  scene.change(10, 0, 41);
  scene.begin(20, -1, kIrq);
  scene.end(25, -1, kIrq);
  scene.change(30, 41, 0);
  scene.seen.finish(Nanoseconds(40));
  CHECK(scene.cpu().missed == 0);
  CHECK(scene.of(task(41)).total == Nanoseconds(15));
}

TEST_CASE("after a loss nothing is counted for the time that was not seen") {
  Scene scene;
  scene.change(10, 0, 17);
  scene.lose(7);
  scene.change(500, 41, 17);
  scene.change(510, 17, 0);
  scene.seen.finish(Nanoseconds(600));
  CHECK(scene.cpu().lost == 7);
  CHECK(scene.of(task(17)).total == Nanoseconds(10));
  CHECK(scene.of(task(41)).total == Nanoseconds(0));
}

TEST_CASE("events of other CPUs, and of before the start, are ignored") {
  Interruptions seen({4}, Nanoseconds(100));
  seen.add({5, Nanoseconds(200), 41, Switch{41, 17, "a", "b"}});
  seen.add({4, Nanoseconds(50), 41, Switch{41, 17, "a", "b"}});
  seen.finish(Nanoseconds(300));
  CHECK(seen.cpus().size() == 1);
  CHECK(seen.cpus().at(4).events == 0);
}

TEST_CASE("more causes than can be told apart are counted together") {
  Scene scene;
  int at = 0;
  for (int tid = 1; tid <= static_cast<int>(kMostCauses) + 10; ++tid) {
    scene.change(at, 0, tid);
    scene.change(at + 3, tid, 0);
    at += 5;
  }
  scene.seen.finish(Nanoseconds(at));
  CHECK(scene.cpu().causes.size() == kMostCauses);
  CHECK((scene.cpu().rest.count == 10 && scene.cpu().rest.total == Nanoseconds(30)));
}

TEST_CASE("no time is lost and none is counted twice") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int limit) {
      return static_cast<int>(random() % static_cast<unsigned>(limit));
    };
    INFO("seed " << seed);
    Scene scene;
    int at = 0, running = 1;
    std::vector<Cause> open;
    for (int i = 0; i < 100; ++i) {
      at += below(10);
      if (!open.empty() && below(2) == 0) {
        scene.end(at, running, open.back());
        open.pop_back();
      } else if (open.size() < 3 && below(2) == 0) {
        open.push_back({CauseKind::kInterrupt, static_cast<int>(open.size())});
        scene.begin(at, running, open.back());
      } else if (open.empty()) {
        const int next = 1 + (running + below(2)) % 3;
        scene.change(at, running, next);
        running = next;
      }
    }
    for (; !open.empty(); open.pop_back()) scene.end(at, running, open.back());
    scene.seen.finish(Nanoseconds(at + 1));
    Nanoseconds sum{};
    for (const auto& [cause, usage] : scene.cpu().causes) sum += usage.total;
    CHECK(sum == Nanoseconds(at + 1));
  }
}
