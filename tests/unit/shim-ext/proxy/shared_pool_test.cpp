// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/shared_pool.hpp"

#include <sched.h>
#include <sys/socket.h>

#include <array>
#include <iostream>
#include <string>
#include <thread>

#include "base/unix_socket.hpp"
#include "policy/facts/id_set.hpp"
#include "shim-ext/proxy/relay.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"
#include "tests/test_clock.hpp"

using namespace ka;
using policy::CpuSet;
using proxy::SharedPool;

namespace {

CpuSet own_mask() {
  cpu_set_t mask;
  ::sched_getaffinity(0, sizeof(mask), &mask);
  CpuSet cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &mask)) cpus.add(cpu);
  }
  return cpus;
}

/// kubelet's file, and two CPUs of which one is the pool.
struct Scene {
  Scene() {
    const CpuSet all = own_mask();
    first = {all.first()};
    last = {all.last()};
  }

  bool possible() const {
    if (first == last) std::cout << "skipped: needs two CPUs\n";
    return first != last;
  }

  /// As kubelet does it: another file under the same name.
  void write(const std::string& text) const {
    dir.write("fresh", text);
    std::filesystem::rename(dir.path() / "fresh", file());
  }
  /// The pool is `cpus`; pod "u1" owns `own`.
  void pool(const CpuSet& cpus, const CpuSet& own) const {
    write(R"({"policyName":"static","defaultCpuSet":")" + policy::format_list(cpus) +
          R"(","entries":{"u1":{"app":")" + policy::format_list(own) + R"("}},"checksum":0})");
  }
  void pool(const CpuSet& cpus) const {
    write(R"({"policyName":"static","defaultCpuSet":")" + policy::format_list(cpus) +
          R"(","checksum":0})");
  }
  std::filesystem::path file() const { return dir.path() / "cpu_manager_state"; }

  tests::TempDir dir;
  CpuSet first, last;
};

/// In a thread of its own, which keeps the test's mask as it is.
template <typename Work>
void apart(Work work) {
  std::thread(work).join();
}

}  // namespace

TEST_CASE("the proxy moves to the pool, and again when kubelet changes it") {
  const Scene scene;
  if (!scene.possible()) return;
  apart([&] {
    const CpuSet all = own_mask();
    SharedPool pool(scene.file());
    CHECK(pool.confine());
    CHECK(own_mask() == all);
    scene.pool(scene.first);
    CHECK(pool.confine());
    CHECK(own_mask() == scene.first);
    scene.pool(scene.last);
    CHECK(pool.confine());
    CHECK(own_mask() == scene.last);
  });
}

TEST_CASE("a shim starts on the pool and its own pod's CPUs, and on no other pod's") {
  const Scene scene;
  if (!scene.possible()) return;
  scene.pool(scene.first, scene.last);
  apart([&] {
    SharedPool pool(scene.file());
    pool.set_pod("u2");
    CHECK(pool.confine_with_own());
    CHECK(own_mask() == scene.first);
    pool.set_pod("u1");
    CHECK(pool.confine_with_own());
    CHECK(own_mask() == (scene.first | scene.last));
    CHECK(pool.confine());
    CHECK(own_mask() == scene.first);
  });
}

TEST_CASE("a half-written file, or one without the pool, changes nothing") {
  const Scene scene;
  if (!scene.possible()) return;
  apart([&] {
    SharedPool pool(scene.file());
    scene.pool(scene.first);
    CHECK(pool.confine());
    scene.write(R"({"policyName":"static","defaultCp)");
    CHECK_FALSE(pool.confine());
    scene.pool({});
    CHECK_FALSE(pool.confine());
    scene.pool({4000});
    CHECK_FALSE(pool.confine());
    CHECK(own_mask() == scene.first);
    scene.pool(scene.last);
    CHECK(pool.confine());
    CHECK(own_mask() == scene.last);
  });
}

TEST_CASE("a running proxy leaves CPUs of others, and only the daemon widens it") {
  const Scene scene;
  if (!scene.possible()) return;
  apart([&] {
    const CpuSet all = own_mask();
    SharedPool pool(scene.file());
    CHECK(pool.before() == all);
    pool.set_pod("u1");
    scene.pool(scene.first, all - scene.first);
    CHECK(pool.leave_others());
    CHECK(own_mask() == all);
    scene.pool(scene.first);
    CHECK(pool.leave_others());
    CHECK(own_mask() == scene.first);
    scene.pool(all);
    CHECK(pool.leave_others());
    CHECK(own_mask() == scene.first);
    scene.pool(scene.last);
    CHECK(pool.leave_others());
    CHECK(own_mask() == scene.last);
    CHECK(pool.before() == all);
  });
}

TEST_CASE("a running relay stays on the pool as it changes") {
  const Scene scene;
  if (!scene.possible()) return;
  scene.pool(scene.first);
  const std::string own = (scene.dir.path() / "own").string();
  const std::string shim = (scene.dir.path() / "shim").string();
  auto at_shim = base::listen_unix(shim);
  auto listener = base::listen_unix(own);
  auto guard = base::connect_unix(shim);
  REQUIRE((at_shim && listener && guard));
  const base::Fd shims_end(::accept4(at_shim->get(), nullptr, nullptr, SOCK_CLOEXEC));
  apart([&] {
    const tests::TestClock clock;
    SharedPool pool(scene.file());
    CHECK(pool.confine());
    proxy::Relay relay(clock, {std::move(*listener), std::move(*guard), shim}, "/nowhere",
                       "/nowhere", std::move(pool));
    scene.pool(scene.last);
    clock.sleep(SharedPool::kPeriod - std::chrono::milliseconds(1));
    relay.turn(clock.now());
    CHECK(own_mask() == scene.first);
    clock.sleep(std::chrono::milliseconds(1));
    relay.turn(clock.now());
    CHECK(own_mask() == scene.last);
    at_shim->reset();
    ::shutdown(shims_end.get(), SHUT_RDWR);
    relay.run();
  });
}
