// SPDX-License-Identifier: Apache-2.0
// cgroup trees made of files, as the kernel lays them out.
#include "affinity/host/cgroup.hpp"

#include <string>

#include "affinity/host/cpuset_watch.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using policy::CpuSet;

namespace {

/// /proc and cgroup mounts below a temporary directory.
class Node {
 public:
  std::string path(const std::string& name) const { return dir_.path() / name; }
  std::filesystem::path proc() const { return dir_.path() / "proc"; }
  void write(const std::string& name, const std::string& text) const {
    dir_.write(name, text + '\n');
  }
  void mounts(const std::string& lines) const { write("proc/self/mountinfo", lines); }
  std::string v1_mount() const {
    return "34 31 0:31 / " + path("v1/cpu") + " rw shared:5 - cgroup cgroup rw,cpu,cpuacct\n" +
           "35 31 0:32 / " + path("v1/cpuset") + " rw,relatime - cgroup cgroup rw,cpuset\n";
  }
  std::string v2_mount() const {
    return "41 31 0:38 / " + path("v2") + " rw,relatime shared:9 - cgroup2 cgroup2 rw\n";
  }

 private:
  tests::TempDir dir_;
};

/// A cgroup with `cpus` configured, below one that has CPUs 0-1 and 4-7 left.
host::Cgroups with_vm(const Node& node, const std::string& cpus, const std::string& effective) {
  node.mounts(node.v2_mount());
  node.write("v2/cgroup.controllers", "cpuset");
  node.write("v2/kubepods/cpuset.cpus.effective", "0-1,4-7");
  node.write("v2/kubepods/vm/cpuset.cpus", cpus);
  node.write("v2/kubepods/vm/cpuset.cpus.effective", effective);
  return host::Cgroups::find(node.proc()).value();
}

}  // namespace

TEST_CASE("v2 is used if it controls cpusets, else v1") {
  const Node node;
  node.mounts(node.v2_mount() + node.v1_mount());
  node.write("v2/cgroup.controllers", "cpu cpusets memory");
  REQUIRE(host::Cgroups::find(node.proc()));
  CHECK(host::Cgroups::find(node.proc())->version() == 1);
  CHECK(host::Cgroups::find(node.proc())->mount() == node.path("v1/cpuset"));
  node.write("v2/cgroup.controllers", "cpuset cpu memory");
  CHECK(host::Cgroups::find(node.proc())->version() == 2);
  node.mounts("1 2 0:3 / /proc rw - proc proc rw");
  CHECK(host::Cgroups::find(node.proc()).error().code == base::ErrorCode::kUnavailable);
}

TEST_CASE("a process's v2 cgroup has its effective set") {
  const Node node;
  node.mounts(node.v2_mount());
  node.write("v2/cgroup.controllers", "cpuset");
  node.write("proc/42/cgroup", "0::/kubepods/pod1/sandbox");
  node.write("v2/kubepods/pod1/sandbox/cpuset.cpus", "");
  node.write("v2/kubepods/pod1/sandbox/cpuset.cpus.effective", "2-3,8");
  const auto facts = host::Cgroups::find(node.proc())->of_task(42);
  REQUIRE(facts);
  CHECK(facts->cpus == CpuSet{2, 3, 8});
  CHECK(facts->directory == node.path("v2/kubepods/pod1/sandbox"));
  CHECK(facts->cpuset_directory == facts->directory);
}

TEST_CASE(
    "CPUs of the vCPUs' partition are the VMM's, although no other thread of it may use them") {
  const Node node;
  const auto cgroups = with_vm(node, "0-3", "0-1");
  const auto vm = node.path("v2/kubepods/vm");
  CHECK(cgroups.read(vm)->cpus == CpuSet{0, 1});
  node.write("v2/kubepods/vm/kata-affinity/cpuset.cpus.effective", "2-3");
  CHECK(cgroups.read(vm)->cpus == CpuSet{0, 1, 2, 3});
  CHECK(cgroups.read(node.path("v2/kubepods"))->cpus == CpuSet{0, 1, 4, 5, 6, 7});
  const auto cpuset = cgroups.cpuset(vm);
  CHECK(cpuset->bound == CpuSet::range(0, 7));
  CHECK(cpuset->effective() == CpuSet{0, 1, 2, 3});
}

TEST_CASE("a cgroup that is a partition has what it took, not what is left above it") {
  const Node node;
  const auto cgroups = with_vm(node, "0-5", "2-3");
  const auto vm = node.path("v2/kubepods/vm");
  CHECK(cgroups.cpuset(vm)->bound == CpuSet{2, 3});
  CHECK(cgroups.cpuset(vm)->effective() == CpuSet{2, 3});
  node.write("v2/kubepods/vm/cpuset.cpus.effective", "0-1,4-5");
  CHECK(cgroups.cpuset(vm)->bound == CpuSet{0, 1, 4, 5, 6, 7});
}

TEST_CASE("what cannot be read is neither no controller, nor no partition, nor another file") {
  const Node node;
  const auto is_unread = [](const auto& result) { return !result && !is_gone(result); };
  node.mounts(node.v2_mount());
  node.write("v2/cgroup.controllers/x", "");
  CHECK(is_unread(host::Cgroups::find(node.proc())));
  CHECK(host::Cgroups::find(node.proc()).error().code != base::ErrorCode::kUnavailable);
  node.mounts(node.v1_mount() + node.v2_mount());
  CHECK(host::Cgroups::find(node.proc())->version() == 1);

  const auto v1 = host::Cgroups::find(node.proc());
  node.write("v1/cpuset/vm/cpuset.cpus", "0-7");
  node.write("v1/cpuset/vm/cpuset.effective_cpus/x", "");
  CHECK(is_unread(v1->read(node.path("v1/cpuset/vm"))));

  std::filesystem::remove_all(node.path("v2/cgroup.controllers"));
  node.write("v2/cgroup.controllers", "cpuset");
  const auto v2 = host::Cgroups::find(node.proc());
  node.write("v2/vm/cpuset.cpus", "0-3");
  node.write("v2/cpuset.cpus.effective", "0-7");
  node.write("v2/vm/cpuset.cpus.effective", "0-1");
  REQUIRE(v2->read(node.path("v2/vm")));
  node.write("v2/vm/kata-affinity/cpuset.cpus.effective/x", "");
  CHECK(is_unread(v2->read(node.path("v2/vm"))));
  CHECK(is_unread(v2->cpuset(node.path("v2/vm"))));
}

TEST_CASE("without the controller the nearest ancestor with it applies") {
  const Node node;
  node.mounts(node.v2_mount());
  node.write("v2/cgroup.controllers", "cpuset");
  node.write("proc/42/cgroup", "0::/system.slice/a/b");
  node.write("v2/system.slice/a/b/cgroup.procs", "42");
  node.write("v2/system.slice/cpuset.cpus.effective", "0-5");
  const auto facts = host::Cgroups::find(node.proc())->of_task(42);
  REQUIRE(facts);
  CHECK(facts->cpus == CpuSet::range(0, 5));
  CHECK(facts->cpuset_directory == node.path("v2/system.slice"));
  CHECK(facts->directory == node.path("v2/system.slice/a/b"));
}

TEST_CASE("v1 has effective sets, or on old kernels only the configured ones") {
  const Node node;
  node.mounts(node.v1_mount());
  node.write("proc/42/cgroup", "9:cpu,cpuacct:/other\n3:cpuset:/kata_s1\n0::/");
  node.write("v1/cpuset/kata_s1/cpuset.cpus", "4-7");
  node.write("v1/cpuset/kata_s1/cpuset.mems", "0");
  const auto cgroups = host::Cgroups::find(node.proc());
  REQUIRE(cgroups);
  CHECK(cgroups->of_task(42)->cpus == CpuSet::range(4, 7));
  node.write("v1/cpuset/kata_s1/cpuset.effective_cpus", "4-6");
  CHECK(cgroups->of_task(42)->cpus == CpuSet::range(4, 6));
}

TEST_CASE("missing and malformed files are different errors") {
  const Node node;
  node.mounts(node.v2_mount());
  node.write("v2/cgroup.controllers", "cpuset");
  const auto cgroups = host::Cgroups::find(node.proc());
  CHECK(cgroups->of_task(42).error().code == base::ErrorCode::kGone);
  node.write("proc/42/cgroup", "0::/s");
  node.write("v2/s/cpuset.cpus.effective", "0-");
  CHECK(cgroups->of_task(42).error().code == base::ErrorCode::kInvalid);
}

TEST_CASE("the watch reports written directories, and only watched ones") {
  const Node node;
  for (const char* name : {"a", "b", "c"}) {
    node.write(std::string(name) + "/cpuset.cpus", "0-3");
    node.write(std::string(name) + "/memory.max", "1");
  }
  auto watch = host::CpusetWatch::open();
  REQUIRE(watch);
  REQUIRE(watch->watch_only({node.path("a"), node.path("b"), node.path("missing")}));
  CHECK(watch->drain()->empty());
  node.write("a/cpuset.cpus", "0");
  node.write("b/memory.max", "2");
  node.write("c/cpuset.cpus", "0");
  CHECK(*watch->drain() == std::set<std::string>{node.path("a")});
  CHECK(watch->drain()->empty());

  REQUIRE(watch->watch_only({node.path("b"), node.path("c")}));
  node.write("a/cpuset.cpus", "1");
  node.write("b/cgroup.procs", "1");
  node.write("c/cpuset.cpus", "1");
  CHECK(*watch->drain() == std::set<std::string>{node.path("b"), node.path("c")});
}

TEST_CASE("a directory that is removed and created again is watched again") {
  const Node node;
  node.write("a/cpuset.cpus", "0");
  auto watch = host::CpusetWatch::open();
  REQUIRE(watch->watch_only({node.path("a")}));
  std::filesystem::remove_all(node.path("a"));
  CHECK(watch->drain()->empty());
  node.write("a/cpuset.cpus", "0");
  REQUIRE(watch->watch_only({node.path("a")}));
  node.write("a/cpuset.cpus", "1");
  CHECK(*watch->drain() == std::set<std::string>{node.path("a")});
}
