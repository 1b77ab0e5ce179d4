// SPDX-License-Identifier: Apache-2.0
// What else runs on the CPU of a dedicated vCPU, from the kernel's counters.
#include "affinity/line/cpu_interruptions.hpp"

#include <chrono>

#include "tests/catch.hpp"
#include "tests/unit/line/scene.hpp"

using namespace ka;
using std::chrono::seconds;
using tests::LineScene;

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr int kCpu = 2;

/// A VM of one vCPU that has CPU 2 to itself, whose thread is 111.
struct Dedicated : LineScene {
  Dedicated() {
    boot_vm(100, 2);
    REQUIRE(add("s1", 100));
    REQUIRE(container("s1", "app", {kCpu}, true));
  }

  /// Both counters as they are `time` later.
  void after(seconds time, std::uint64_t own, std::uint64_t own_slices, std::uint64_t all,
             std::uint64_t all_slices, std::uint64_t interrupts = 0) {
    clock.advance(time);
    node.ran(100, 111, own, own_slices);
    node.cpu_ran(kCpu, all, all_slices, interrupts);
    counted.read();
  }
  line::Interruptions count() const { return counted.tenancies().at(kCpu).count; }

  line::CpuInterruptions counted{line().node()};
};

}  // namespace

TEST_CASE("what the CPU has run more than its vCPU are interruptions") {
  Dedicated scene;
  scene.after(seconds(0), 5 * kSecond, 40, 9 * kSecond, 100, 7);
  CHECK(scene.count().slices == 0);
  scene.after(seconds(10), 6 * kSecond, 50, 10 * kSecond + 3000, 113, 9);
  CHECK(scene.count().slices == 3);
  CHECK(scene.count().nanoseconds == 3000);
  CHECK(scene.count().interrupts == 2);
  scene.after(seconds(10), 7 * kSecond, 60, 11 * kSecond + 3000, 123, 9);
  CHECK(scene.count().slices == 3);
  CHECK(scene.count().nanoseconds == 3000);
  CHECK(scene.counted.totals().at(kCpu).slices == 3);
  CHECK(scene.counted.tenancies().at(kCpu).vcpu == 1);
}

TEST_CASE("the slice in which a vCPU runs for long is not taken for another's") {
  Dedicated scene;
  scene.after(seconds(0), 100 * kSecond, 1, 0, 1);
  scene.after(seconds(10), 110 * kSecond, 1, 0, 1);
  CHECK(scene.count().nanoseconds == 0);
  SECTION("it is interrupted for 2 ms, and runs on") {
    scene.after(seconds(10), 120 * kSecond - 2'000'000, 2, 115 * kSecond + 2'000'000, 3);
    CHECK(scene.count().slices == 1);
    CHECK(scene.count().nanoseconds == 2'000'000);
  }
  SECTION("it runs on so long that the CPU's time falls behind: a later reading knows") {
    scene.after(seconds(2), 112 * kSecond - 1'000'000, 2, 1'000'000, 3);
    CHECK(scene.count().slices == 1);
    CHECK(scene.count().nanoseconds == 0);
    scene.after(seconds(2), 114 * kSecond - 2'000'000, 3, 113 * kSecond, 5);
    CHECK(scene.count().slices == 2);
    CHECK(scene.count().nanoseconds == 2'000'000);
  }
}

TEST_CASE("counters of a CPU and its vCPU that are read apart make no interruption") {
  Dedicated scene;
  scene.after(seconds(0), 0, 0, 0, 0);
  scene.after(seconds(1), 0, 12, 0, 11);
  scene.after(seconds(1), 0, 12, 0, 12);
  CHECK(scene.count().slices == 0);
}

TEST_CASE("another vCPU on the CPU begins anew, and totals go on") {
  Dedicated scene;
  scene.after(seconds(0), 0, 0, 0, 0);
  scene.after(seconds(10), 0, 0, 4000, 4);
  scene.boot_vm(300, 2);
  scene.node.ran(300, 311, 0, 0);
  REQUIRE(scene.container("s1", "app", {4}, true));
  scene.counted.read();
  CHECK_FALSE(scene.counted.tenancies().contains(kCpu));
  REQUIRE(scene.add("s2", 300));
  REQUIRE(scene.container("s2", "other", {kCpu}, true));
  scene.counted.read();
  CHECK(scene.counted.tenancies().at(kCpu).sandbox == "s2");
  CHECK(scene.count().slices == 0);
  scene.node.cpu_ran(kCpu, 9000, 6);
  scene.counted.read();
  CHECK(scene.count().slices == 2);
  CHECK(scene.counted.totals().at(kCpu).slices == 6);
}

TEST_CASE("a kernel that does not count is named, and what was counted is kept") {
  Dedicated scene;
  scene.counted.read();
  CHECK(scene.counted.problem().find("CONFIG_SCHEDSTATS") != std::string::npos);
  CHECK(scene.counted.tenancies().empty());
  scene.after(seconds(0), 0, 0, 0, 0);
  scene.after(seconds(10), 0, 0, 4000, 4);
  CHECK(scene.counted.problem().empty());
  std::filesystem::remove(scene.node.proc() / "schedstat");
  scene.counted.read();
  CHECK(scene.counted.problem().find("CONFIG_SCHEDSTATS") != std::string::npos);
  CHECK(scene.counted.totals().at(kCpu).slices == 4);
}

TEST_CASE("without a dedicated vCPU nothing is read, and nothing is wrong") {
  Dedicated scene;
  scene.counted.read();
  CHECK_FALSE(scene.counted.problem().empty());
  REQUIRE(scene.container("s1", "app", {kCpu}, false));
  scene.counted.read();
  CHECK(scene.counted.problem().empty());
  CHECK(scene.counted.tenancies().empty());
}

TEST_CASE("interrupts of passed-through devices are counted apart") {
  Dedicated scene;
  scene.after(seconds(0), 0, 0, 0, 0);
  scene.clock.advance(seconds(10));
  scene.node.cpu_ran(kCpu, 0, 0, 4, 907);
  scene.counted.read();
  scene.node.cpu_ran(kCpu, 0, 0, 4, 910);
  scene.counted.read();
  CHECK(scene.count().interrupts == 4);
  CHECK(scene.count().passed_through == 10);
  CHECK(scene.counted.totals().at(kCpu).passed_through == 10);
}
