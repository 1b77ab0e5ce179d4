// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/io_weight.hpp"

#include "affinity/host/cpuset_writer.hpp"
#include "base/files.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"
#include "tests/test_clock.hpp"

using namespace ka;
using base::ErrorCode;

TEST_CASE("the weight of a cgroup is the one of devices without their own") {
  const tests::TempDir dir;
  dir.write("a/io.weight", "default 250\n8:16 30\n");
  CHECK(host::read_io_weight(dir.path() / "a") == 250);
  dir.write("b/io.weight", "100\n");
  CHECK(host::read_io_weight(dir.path() / "b") == 100);
  dir.write("c/io.weight", "8:16 30\n");
  CHECK(host::read_io_weight(dir.path() / "c").error().code == ErrorCode::kInternal);
}

TEST_CASE("a cgroup without a weight says why") {
  const tests::TempDir dir;
  dir.write("pods/a/cgroup.controllers", "cpuset cpu\n");
  dir.write("pods/b/io.stat", "");
  const auto off = host::read_io_weight(dir.path() / "pods/a");
  CHECK(off.error().code == ErrorCode::kUnavailable);
  CHECK(off.error().message == "the io controller is not enabled for its cgroup");
  CHECK(host::read_io_weight(dir.path() / "pods/b").error().message ==
        "this kernel has no io.weight (CONFIG_BLK_CGROUP_IOCOST)");
  CHECK(host::read_io_weight(dir.path() / "pods/c").error().code == ErrorCode::kGone);
}

TEST_CASE("limits of a cgroup are read disk by disk, or it says why there are none") {
  const tests::TempDir dir;
  const std::string line = "8:16 rbps=2097152 wbps=max riops=max wiops=120\n";
  dir.write("a/io.max", line);
  CHECK(host::read_io_max(dir.path() / "a") ==
        policy::IoLimits{{"8:16", "rbps=2097152 wbps=max riops=max wiops=120"}});
  dir.write("a/io.max", "8:16 rbps=many\n");
  CHECK(host::read_io_max(dir.path() / "a").error().code == ErrorCode::kInternal);
  dir.write("b/cgroup.controllers", "cpuset\n");
  CHECK(host::read_io_max(dir.path() / "b").error().message ==
        "the io controller is not enabled for its cgroup");
  dir.write("b/io.stat", "");
  CHECK(host::read_io_max(dir.path() / "b").error().message ==
        "this kernel has no io.max (CONFIG_BLK_DEV_THROTTLING)");
  CHECK(host::read_io_max(dir.path() / "c").error().code == ErrorCode::kGone);
}

TEST_CASE("limits of a disk are one line of the kernel's file") {
  const tests::TempDir dir;
  dir.write("x.scope/io.max", "");
  const tests::TestClock clock;
  host::KernelCpusetWriter writer(clock, dir.path() / "no-systemd");
  const std::string limits = "rbps=max wbps=5 riops=max wiops=max";
  REQUIRE(writer.write_io_max(dir.path() / "x.scope", "8:0", limits));
  CHECK(*base::read_file(dir.path() / "x.scope/io.max") == "8:0 " + limits + '\n');
  CHECK(writer.write_io_max(dir.path(), "8:0", limits).error().code == ErrorCode::kUnavailable);
}

TEST_CASE("the topmost cgroup says whether the io controller could be enabled") {
  const tests::TempDir dir;
  dir.write("top/cgroup.controllers", "cpuset cpu io memory\n");
  dir.write("top/pods/cgroup.controllers", "cpuset\n");
  dir.write("other/cgroup.controllers", "cpuset radio\n");
  CHECK(host::has_io_controller(dir.path() / "top/pods/a.scope"));
  CHECK_FALSE(host::has_io_controller(dir.path() / "other/a.scope"));
}
