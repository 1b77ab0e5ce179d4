// SPDX-License-Identifier: Apache-2.0
// Masks of kernel threads whose numbers are given away.
#include "affinity/helper/kernel_threads.hpp"

#include <functional>
#include <utility>

#include "tests/catch.hpp"
#include "tests/fake_calls.hpp"
#include "tests/fake_node.hpp"

using namespace ka;
using namespace ka::helper;
using base::ErrorCode;
using policy::CpuSet;

namespace {

/// A kernel thread, 30; a process, 70, that will start the stranger.
struct Scene {
  Scene() {
    node.process(2, 0, "kthreadd", "");
    node.process(30, 2, "kswapd0", "");
    node.process(70, 1, "parent", "/bin/sh");
    node.write("proc/70/cpuset", "/\n");
    calls.own[70] = {4, 5};
  }

  void give_away(int parent = 70) {
    node.end_process(30);
    node.process(30, parent, "stranger", "/bin/sleep");
    node.thread(30, 30, "stranger", parent, 400000);
    node.write("proc/30/cpuset", "/\n");
  }
  base::Result<void> write() const {
    return threads.write({"30 100030", "kswapd0", CpuSet::range(0, 7), {}}, {0, 1});
  }
  std::string cpus() const { return policy::format_list(calls.effective(30)); }

  tests::FakeNode node;
  tests::FakeCalls calls{CpuSet::range(0, 7)};
  KernelThreads threads{{node.proc(), node.sys(), {}, {}}, calls};
};

/// Undoing writes too.
std::function<void(int)> once(std::function<void()> act) {
  return [act = std::move(act), done = false](int) mutable {
    if (!std::exchange(done, true)) act();
  };
}

}  // namespace

TEST_CASE("a process that got a kernel thread's number during the write has its own mask again") {
  Scene scene;
  scene.calls.before_write = once([&] { scene.give_away(); });
  CHECK(scene.write().error().code == ErrorCode::kGone);
  CHECK(scene.cpus() == "4-5");
}

TEST_CASE("another kernel thread of that number has the mask of the kernel's own") {
  Scene scene;
  scene.calls.before_write = once([&] { scene.give_away(2); });
  CHECK(scene.write().error().code == ErrorCode::kGone);
  CHECK(scene.cpus() == "0-7");
}

TEST_CASE("a mask that reached a thread that cannot be seen is undone when it can") {
  Scene scene;
  std::function<void()> show;
  scene.calls.after_write =
      once([&] { show = scene.node.make_unreadable("proc/30/task/30/stat"); });
  CHECK(scene.write().error().code != ErrorCode::kGone);
  REQUIRE(scene.cpus() == "0-1");
  show();
  scene.give_away();
  REQUIRE(scene.threads.read());
  CHECK(scene.cpus() == "4-5");
}

TEST_CASE("a kernel thread that can be seen again keeps what was written") {
  Scene scene;
  std::function<void()> show;
  scene.calls.after_write =
      once([&] { show = scene.node.make_unreadable("proc/30/task/30/stat"); });
  REQUIRE_FALSE(scene.write());
  show();
  REQUIRE(scene.threads.read());
  CHECK(scene.cpus() == "0-1");
}
