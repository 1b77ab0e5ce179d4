// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/apply.hpp"

#include <cerrno>
#include <functional>
#include <utility>

#include "tests/catch.hpp"
#include "tests/fake_calls.hpp"
#include "tests/fake_node.hpp"

using namespace ka;
using line::WriteResult;
using policy::CpuSet;
using policy::plan::Write;
using Status = WriteResult::Status;

namespace {

/// Undoing writes too.
std::function<void(int)> once(std::function<void()> act) {
  return [act = std::move(act), done = false](int) mutable {
    if (!std::exchange(done, true)) act();
  };
}

struct Scene {
  tests::FakeNode node;
  tests::FakeCalls calls{CpuSet::range(0, 7)};

  Scene() {
    node.process(10, 1, "qemu", "/usr/bin/qemu-system-x86_64");
    node.thread(10, 11, "CPU 0/KVM", 1, 500);
  }

  WriteResult write(CpuSet cpus, std::uint64_t start_time = 500, bool everywhere = false) {
    const Write wanted{
        {10, 11, start_time}, Write::Kind::kMove, false, std::move(cpus), everywhere};
    base::ThreadStats stats(node.proc());
    return line::apply({wanted}, calls, stats).front();
  }

  WriteResult check_again(CpuSet cpus) {
    base::ThreadStats stats(node.proc());
    return line::check_again({{10, 11, 500}, Write::Kind::kMove, false, std::move(cpus)}, calls,
                             stats);
  }

  /// Another process gets the number of the thread; process 20 has started it.
  void give_away(const std::string& cpuset = "/\n") {
    node.end_thread(10, 11);
    calls.gone.insert(11);
    node.thread(20, 20, "parent", 1);
    node.write("proc/20/cpuset", "/\n");
    node.thread(11, 11, "stranger", 20);
    node.write("proc/11/cpuset", cpuset);
  }

  std::string cpus() const { return policy::format_list(calls.effective(11)); }
};

}  // namespace

TEST_CASE("a thread is placed and read back") {
  Scene scene;
  const WriteResult applied = scene.write({2, 3});
  CHECK(applied.status == Status::kDone);
  CHECK(applied.actual == CpuSet{2, 3});
}

TEST_CASE("a thread that left its process is not written to") {
  Scene scene;
  scene.calls.gone.insert(11);
  CHECK(scene.write({2}).status == Status::kGone);
  CHECK(scene.calls.writes.empty());
}

TEST_CASE("a tid reused within the process is checked again") {
  Scene scene;
  scene.node.thread(10, 10, "qemu", 1, 400);
  scene.calls.after_write = [&](int) { scene.node.thread(10, 11, "other", 1, 501); };
  CHECK(scene.write({2}).status == Status::kRetry);
  CHECK(scene.cpus() == "2");
}

TEST_CASE("a process that reuses the tid during the write does not keep the mask") {
  Scene scene;
  scene.calls.before_write = [&](int) { scene.give_away(); };
  const WriteResult applied = scene.write({2});
  CHECK(applied.status == Status::kGone);
  CHECK(applied.reverted);
  CHECK(scene.cpus() == "0-7");
}

TEST_CASE("a stranger in a narrower cpuset does not keep what the write came to there") {
  Scene scene;
  CpuSet cpuset{3, 4};
  scene.calls.cgroup_of = [&](int) { return cpuset; };
  scene.calls.before_write = [&](int) { scene.give_away("/narrow\n"); };
  CHECK(scene.write({2, 3}).reverted);
  CHECK(scene.cpus() == "3-4");
  cpuset = CpuSet::range(0, 7);
  CHECK(scene.cpus() == "0-7");
}

TEST_CASE("a stranger has the mask that it was started with again") {
  for (const bool everywhere : {false, true}) {
    Scene scene;
    scene.calls.before_write = [&](int) {
      scene.give_away();
      scene.calls.own[20] = {1, 2};
    };
    CHECK(scene.write(everywhere ? CpuSet::range(0, 7) : CpuSet{2}, 500, everywhere).reverted);
    CHECK(scene.cpus() == "1-2");
  }
}

TEST_CASE("a stranger's thread has the mask of its process again") {
  Scene scene;
  scene.calls.before_write = [&](int) {
    scene.give_away();
    scene.node.thread(30, 30, "server", 1);
    scene.node.write("proc/30/cpuset", "/\n");
    scene.node.thread(30, 11, "worker", 1, 100031);
    scene.calls.own[30] = {4, 5};
    scene.calls.own[20] = {1, 2};
  };
  CHECK(scene.write({2}).reverted);
  CHECK(scene.cpus() == "4-5");
}

TEST_CASE("what a parent in another cpuset may use says nothing of the stranger") {
  Scene scene;
  scene.calls.before_write = [&](int) {
    scene.give_away("/other\n");
    scene.calls.own[20] = {1, 2};
  };
  CHECK(scene.write({2}).reverted);
  CHECK(scene.cpus() == "0-7");
}

TEST_CASE("a process that reuses the VMM's pid during the write does not keep the mask") {
  for (const int tid : {10, 11}) {
    Scene scene;
    scene.calls.before_write = [&](int) {
      scene.node.thread(10, 10, "stranger", 1, 200000);
      scene.node.thread(10, 11, "its thread", 1, 200001);
    };
    base::ThreadStats stats(scene.node.proc());
    const Write write{{10, tid, tests::process_id(10).start_time}, Write::Kind::kMove, false, {2}};
    CHECK(line::apply({write}, scene.calls, stats).front().reverted);
    CHECK(policy::format_list(scene.calls.effective(tid)) == "0-7");
  }
}

TEST_CASE("a stranger that another program placed since is left as it is") {
  for (const CpuSet& theirs : {CpuSet{5}, CpuSet{3}}) {
    Scene scene;
    scene.calls.after_write = once([&] {
      scene.give_away();
      scene.calls.own[11] = theirs;
    });
    CHECK_FALSE(scene.write({2, 3}).reverted);
    CHECK(scene.calls.effective(11) == theirs);
  }
}

TEST_CASE("an unverified write is settled when its thread can be seen") {
  Scene scene;
  const auto line = scene.node.proc() / "10/task/11/stat";
  scene.calls.after_write = [&](int) {
    std::filesystem::remove(line);
    std::filesystem::create_directory(line);
  };
  const WriteResult applied = scene.write({2});
  CHECK(applied.status == Status::kRetry);
  CHECK(applied.unsettled);
  CHECK(scene.cpus() == "2");
  scene.calls.after_write = nullptr;
  CHECK(scene.check_again({2}).unsettled);
  std::filesystem::remove(line);
  SECTION("its own: nothing is undone") {
    scene.node.thread(10, 11, "CPU 0/KVM", 1, 500);
    CHECK(scene.check_again({2}).status == Status::kDone);
    CHECK(scene.cpus() == "2");
  }
  SECTION("another process's") {
    scene.give_away();
    CHECK(scene.check_again({2}).reverted);
    CHECK(scene.cpus() == "0-7");
  }
}

TEST_CASE("a stranger that cannot be seen or written to is unsettled") {
  Scene scene;
  scene.calls.before_write = once([&] { scene.give_away(); });
  SECTION("its mask cannot be read") { scene.calls.get_faults[11] = {ENOMEM, 2}; }
  SECTION("its status cannot be read") {
    scene.calls.after_write = once([&] {
      const auto status = scene.node.proc() / "11/status";
      std::filesystem::remove(status);
      std::filesystem::create_directory(status);
    });
  }
  SECTION("its mask cannot be written") {
    scene.calls.after_write = once([&] { scene.calls.set_faults[11] = {ENOMEM, 1}; });
  }
  CHECK(scene.write({2}).unsettled);
  scene.calls.after_write = nullptr;
  std::filesystem::remove(scene.node.proc() / "11/status");
  scene.give_away();
  CHECK(scene.check_again({2}).reverted);
  CHECK(scene.cpus() == "0-7");
}

TEST_CASE("the errno table: gone") {
  Scene scene;
  for (const int number : {ESRCH, ENOENT, ENODEV}) {
    scene.calls.writes.clear();
    scene.calls.set_faults[11] = {number, 1};
    scene.calls.before_write = [&](int) { scene.node.end_thread(10, 11); };
    CHECK(scene.write({2}).status == Status::kGone);
    CHECK(scene.calls.writes.size() == 1);
    scene.node.thread(10, 11, "CPU 0/KVM", 1, 500);
  }
  scene.calls.before_write = nullptr;
  scene.node.end_thread(10, 11);
  CHECK(scene.write({2}).status == Status::kGone);
}

TEST_CASE("a thread that /proc still lists is not gone, whatever the call returned") {
  Scene scene;
  scene.calls.set_faults[11] = {ESRCH, 1};
  CHECK(scene.write({2}).status == Status::kRetry);
  CHECK(scene.write({2}).status == Status::kDone);
  scene.calls.get_faults[11] = {ESRCH, 100};
  CHECK(scene.write({3}).status == Status::kRetry);
}

TEST_CASE("the errno table: transient errors are retried, with a limit") {
  for (const int number : {EINVAL, EBUSY, EAGAIN, ENOSPC, EINTR, ENOMEM}) {
    Scene scene;
    scene.calls.set_faults[11] = {number, 2};
    CHECK(scene.write({2}).status == Status::kDone);
    CHECK(scene.calls.writes.size() == 3);
    scene.calls.writes.clear();
    scene.calls.set_faults[11] = {number, 100};
    CHECK(scene.write({2}).status == Status::kRetry);
    CHECK(scene.calls.writes.size() == 3);
  }
}

TEST_CASE("the errno table: permanent errors are given up immediately") {
  for (const int number : {EPERM, EACCES, EROFS}) {
    Scene scene;
    scene.calls.set_faults[11] = {number, 100};
    const WriteResult applied = scene.write({2});
    CHECK(applied.status == Status::kRefused);
    CHECK(applied.error.number == number);
    CHECK(scene.calls.writes.size() == 1);
  }
}

TEST_CASE("the errno table: other errors are reported by name and not retried") {
  Scene scene;
  scene.calls.set_faults[11] = {EFAULT, 100};
  const WriteResult applied = scene.write({2});
  CHECK(applied.status == Status::kRefused);
  CHECK(applied.error.code == base::ErrorCode::kInternal);
  CHECK(applied.error.message.find("Bad address") != std::string::npos);
  CHECK(scene.calls.writes.size() == 1);
}

TEST_CASE("a write that cannot be read back is not a refused write") {
  Scene scene;
  scene.calls.get_faults[11] = {EPERM, 1};
  CHECK(scene.write({2}).status == Status::kRetry);
  CHECK(scene.cpus() == "2");
}

TEST_CASE("a mask that the cgroup narrowed is planned again") {
  Scene scene;
  scene.calls.cgroup_of = [](int) { return CpuSet{2}; };
  const WriteResult applied = scene.write({2, 3});
  CHECK(applied.status == Status::kRetry);
  CHECK(applied.actual == CpuSet{2});
}

TEST_CASE("a thread that may use its whole cgroup gets the all-ones mask") {
  Scene scene;
  scene.calls.cgroup_of = [](int) { return CpuSet{2, 3}; };
  CHECK(scene.write({2, 3}, 500, true).status == Status::kDone);
  scene.calls.cgroup_of = [](int) { return CpuSet{4, 5}; };
  CHECK(scene.calls.effective(11) == CpuSet{4, 5});
}
