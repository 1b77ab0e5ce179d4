// SPDX-License-Identifier: Apache-2.0
// A node where we hand out CPUs, with the cgroups of its containers.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "affinity/host/cgroup.hpp"
#include "tests/fake_cpusets.hpp"
#include "tests/unit/managed/scene.hpp"

namespace ka::tests {

/// A cgroup tree with the container of each of `ids`, and a writer that takes `cost` for each.
struct CgroupScene : Scene {
  explicit CgroupScene(const std::vector<std::string>& ids, const policy::managed::Rules& with = {},
                       const ka::test::Grid& machine = {}) {
    rules = with;
    grid = machine;
    dir.write("sys/devices/system/node/has_memory", "0-1\n");
    for (const char* each : {"0", "1"}) {
      dir.write(std::string("sys/devices/system/node/node") + each + "/meminfo",
                std::string("Node ") + each + " MemTotal: 8 kB\nNode " + each + " MemFree: 8 kB\n");
    }
    node.machine = tests_machine();
    tree.make("", policy::CpuSet::range(0, 7));
    tree.make("pods", policy::CpuSet::range(0, 7));
    for (const std::string& id : ids) tree.make(cgroup(id), policy::CpuSet::range(0, 7));
    dir.write("proc/self/mountinfo",
              "30 1 0:26 / " + mount().string() + " rw,nosuid - cgroup2 cgroup2 rw\n");
    dir.write("cgroup/cgroup.controllers", "cpuset cpu\n");
    tree.before_write = [this](const std::string&) { clock.advance(cost); };
    restart();
    for (const std::string& id : ids) {
      auto made = container(id, 0);
      made.cgroup = '/' + cgroup(id);
      REQUIRE(manager->create(made));
    }
  }

  void restart() {
    start(managed::Cpusets(host::Cgroups::find(dir.path() / "proc").value(), tree));
  }

  std::filesystem::path mount() const { return dir.path() / "cgroup"; }
  static std::string cgroup(const std::string& id) {
    return "pods/cri-containerd-" + id + ".scope";
  }

  FakeCpusets tree{mount()};
  std::chrono::milliseconds cost{0};
};

}  // namespace ka::tests
