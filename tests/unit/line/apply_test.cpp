// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/apply.hpp"

#include <cerrno>

#include "tests/catch.hpp"
#include "tests/fake_calls.hpp"
#include "tests/fake_node.hpp"

using namespace ka;
using line::WriteResult;
using policy::CpuSet;
using policy::plan::Write;
using Status = WriteResult::Status;

namespace {

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
  scene.calls.after_write = [&](int) { scene.node.thread(10, 11, "other", 1, 501); };
  CHECK(scene.write({2}).status == Status::kRetry);
  CHECK(scene.cpus() == "2");
}

TEST_CASE("a process that reuses the tid during the write does not keep the mask") {
  for (const bool process_too : {false, true}) {
    Scene scene;
    scene.calls.before_write = [&](int) {
      scene.node.end_thread(10, 11);
      // A process that has the VMM's number by now has a thread of that number too.
      if (!process_too) scene.calls.gone.insert(11);
    };
    const WriteResult applied = scene.write({2});
    CHECK(applied.status == Status::kGone);
    CHECK(applied.reverted);
    CHECK(scene.cpus() == "0-7");
  }
}

TEST_CASE("a process that reuses the VMM's pid during the write does not keep the mask") {
  Scene scene;
  scene.calls.before_write = [&](int) { scene.node.thread(10, 10, "stranger", 1, 7); };
  base::ThreadStats stats(scene.node.proc());
  const Write write{
      {10, 10, tests::process_id(10).start_time}, Write::Kind::kMove, false, {2}, false};
  CHECK(line::apply({write}, scene.calls, stats).front().reverted);
  CHECK(policy::format_list(scene.calls.effective(10)) == "0-7");
}

TEST_CASE("a reused tid with a mask of its own is left as it is") {
  Scene scene;
  scene.calls.after_write = [&](int) {
    scene.node.end_thread(10, 11);
    scene.calls.gone.insert(11);
    scene.calls.own[11] = {5};
  };
  CHECK_FALSE(scene.write({2}).reverted);
  CHECK(scene.cpus() == "5");
}

TEST_CASE("an unverified identity is retried, and nothing is reverted") {
  Scene scene;
  scene.calls.after_write = [&](int) {
    const auto line = scene.node.proc() / "10/task/11/stat";
    std::filesystem::remove(line);
    std::filesystem::create_directory(line);
  };
  CHECK(scene.write({2}).status == Status::kRetry);
  CHECK(scene.cpus() == "2");
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
