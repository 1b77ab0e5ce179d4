// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/io_weight.hpp"

#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

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

TEST_CASE("the topmost cgroup says whether the io controller could be enabled") {
  const tests::TempDir dir;
  dir.write("top/cgroup.controllers", "cpuset cpu io memory\n");
  dir.write("top/pods/cgroup.controllers", "cpuset\n");
  dir.write("other/cgroup.controllers", "cpuset radio\n");
  CHECK(host::has_io_controller(dir.path() / "top/pods/a.scope"));
  CHECK_FALSE(host::has_io_controller(dir.path() / "other/a.scope"));
}
