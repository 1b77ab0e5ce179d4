// SPDX-License-Identifier: Apache-2.0
// The kernel's own cpuset cgroups, version 1 or 2: needs root, makes a cgroup and removes it.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <string>

#include "affinity/host/cgroup.hpp"
#include "affinity/host/cpuset_watch.hpp"
#include "affinity/host/cpuset_writer.hpp"
#include "base/files.hpp"
#include "tests/catch.hpp"
#include "tests/scratch_cgroup.hpp"

using namespace ka;
using tests::ScratchCgroup;

namespace {

/// A process that sleeps until the end of the test.
class Sleeper {
 public:
  Sleeper() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::pause();
    ::_exit(0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  int pid() const { return pid_; }

 private:
  int pid_;
};

}  // namespace

TEST_CASE("a real cpuset cgroup is read, and writes to it are reported") {
  const auto cgroups = host::Cgroups::find("/proc");
  if (!cgroups) {
    std::cout << "skipped: " << cgroups.error().message << '\n';
    return;
  }
  const ScratchCgroup cgroup(*cgroups);
  const Sleeper sleeper;
  if (!cgroup.ready()) {
    std::cout << "skipped: no cgroup can be made below " << cgroups->mount() << '\n';
    return;
  }
  auto watch = host::CpusetWatch::open();
  REQUIRE(watch);
  REQUIRE(watch->watch_only({cgroup.path()}));

  REQUIRE(cgroup.write("cgroup.procs", std::to_string(sleeper.pid())));
  CHECK(*watch->drain() == std::set<std::string>{cgroup.path()});
  const auto before = cgroups->of_task(sleeper.pid());
  REQUIRE(before);
  CHECK(before->directory == cgroup.path());

  const std::string first = std::to_string(before->cpus.first());
  REQUIRE(cgroup.write("cpuset.cpus", first));
  CHECK(*watch->drain() == std::set<std::string>{cgroup.path()});
  CHECK(cgroups->of_task(sleeper.pid())->cpus == policy::CpuSet{before->cpus.first()});
  CHECK(watch->drain()->empty());
}

TEST_CASE("a real cgroup that is removed and created again is watched again") {
  const auto cgroups = host::Cgroups::find("/proc");
  auto watch = host::CpusetWatch::open();
  REQUIRE(watch);
  for (int round = 0; round < 2; ++round) {
    if (!cgroups) return;
    const ScratchCgroup cgroup(*cgroups);
    if (!cgroup.ready()) return;
    REQUIRE(watch->watch_only({cgroup.path()}));
    REQUIRE(cgroup.write("cpuset.cpus", "0"));
    CHECK(*watch->drain() == std::set<std::string>{cgroup.path()});
  }
}

TEST_CASE("a real cpuset is written, and its parent's is read") {
  const auto cgroups = host::Cgroups::find("/proc");
  if (!cgroups || cgroups->version() != 2) {
    std::cout << "left out: version 2 has no cpuset controller here; the lab's scenario cgroups "
                 "has one\n";
    return;
  }
  const ScratchCgroup cgroup(*cgroups);
  if (!cgroup.ready()) return;
  const policy::CpuSet all = cgroups->read(cgroups->mount())->cpus;
  const base::Clock clock;
  host::KernelCpusetWriter writer(clock, "/nonexistent");
  REQUIRE(writer.write(cgroup.path(), {all.first()}));
  CHECK(*cgroups->cpuset(cgroup.path()) == policy::plan::Cpuset{{all.first()}, all});
  REQUIRE(writer.write(cgroup.path(), {}));
  CHECK(*cgroups->cpuset(cgroup.path()) == policy::plan::Cpuset{{}, all});
  CHECK(writer.write(cgroup.path() / "gone", all).error().code == base::ErrorCode::kGone);
}
