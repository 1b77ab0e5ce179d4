// SPDX-License-Identifier: Apache-2.0
// CFS quotas in cgroup trees made of files.
#include "affinity/host/cfs_quota.hpp"

#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;

namespace {

std::vector<host::CfsQuota> quotas(const tests::TempDir& root) {
  return host::quotas_of(base::ProcFs(root.path() / "proc"), root.path() / "cgroup", 72);
}

}  // namespace

TEST_CASE("v2 quotas apply from the thread's own cgroup upwards") {
  const tests::TempDir root;
  root.write("cgroup/cgroup.controllers", "cpu\n");
  root.write("proc/72/cgroup", "0::/kubepods/pod1/s1\n");
  root.write("cgroup/kubepods/cpu.max", "max 100000\n");
  root.write("cgroup/kubepods/pod1/cpu.max", "300000 100000\n");
  root.write("cgroup/kubepods/pod1/cpu.stat",
             "usage_usec 7\nnr_periods 90\nnr_throttled 4\nthrottled_usec 55\n");
  root.write("cgroup/kubepods/pod1/s1/cpu.max", "50000 20000\n");
  const auto found = quotas(root);
  REQUIRE(found.size() == 2);
  CHECK(found[0].directory == root.path() / "cgroup/kubepods/pod1/s1");
  CHECK(found[0].quota == 50000);
  CHECK(found[0].period == 20000);
  CHECK(found[0].throttled == 0);
  CHECK(found[1].quota == 300000);
  CHECK(found[1].periods == 90);
  CHECK(found[1].throttled == 4);
}

TEST_CASE("v1 quotas are in the cpu controller's own hierarchy") {
  const tests::TempDir root;
  root.write("proc/72/cgroup", "4:cpuset:/elsewhere\n3:cpu,cpuacct:/kubepods/pod1\n");
  root.write("cgroup/cpu/kubepods/pod1/cpu.cfs_quota_us", "150000\n");
  root.write("cgroup/cpu/kubepods/pod1/cpu.cfs_period_us", "100000\n");
  root.write("cgroup/cpu/kubepods/pod1/cpu.stat", "nr_periods 3\nnr_throttled 2\n");
  root.write("cgroup/cpu/kubepods/cpu.cfs_quota_us", "-1\n");
  root.write("cgroup/cpu/kubepods/cpu.cfs_period_us", "100000\n");
  const auto found = quotas(root);
  REQUIRE(found.size() == 1);
  CHECK(found[0].quota == 150000);
  CHECK(found[0].throttled == 2);
}

TEST_CASE("a thread that is gone, and malformed files, have no quota") {
  const tests::TempDir root;
  CHECK(quotas(root).empty());
  root.write("cgroup/cgroup.controllers", "cpu\n");
  root.write("proc/72/cgroup", "0::/a\n");
  for (const char* text : {"", "200000", "x y", "-5 100000", "200000 0"}) {
    root.write("cgroup/a/cpu.max", text);
    CHECK(quotas(root).empty());
  }
}

TEST_CASE("a quota as systemd rounds it is known by its rate, whatever the period") {
  CHECK(host::is_rounded_quota("66666 100000\n", "20000 30000"));
  CHECK(host::is_rounded_quota("200000 100000", "200000 100000"));
  CHECK(host::is_rounded_quota("1000 100000", "500 100000"));
  CHECK_FALSE(host::is_rounded_quota("66667 100000", "20000 30000"));
  CHECK_FALSE(host::is_rounded_quota("max 100000", "20000 30000"));
  CHECK_FALSE(host::is_rounded_quota("66666 100000", "max 100000"));
}
