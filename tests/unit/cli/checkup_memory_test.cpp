// SPDX-License-Identifier: Apache-2.0
// doctor: VMs that do not fit into their pods' memory limits, on files of a machine.
#include <string>
#include <vector>

#include "affinity/cli/doctor/checkup.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using namespace std::string_literals;

namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const std::vector<cli::Symptom>& symptoms) {
  Lines lines;
  for (const cli::Symptom& symptom : symptoms) {
    CHECK_FALSE(symptom.advice.empty());
    lines.push_back(std::string(cli::level_name(symptom.level)) + ' ' + symptom.check + ": " +
                    symptom.text);
  }
  return lines;
}

/// Process 9 is a VMM.
struct MemoryScene {
  Lines found() const {
    std::vector<cli::Symptom> symptoms;
    cli::examine_memory_limit(root.path(), 9, "sandbox s1: ", symptoms);
    return lines_of(symptoms);
  }
  bool is_limited() const {
    const Lines lines = found();
    return lines.size() == 1 && lines[0].starts_with(
                                    "bad memory: sandbox s1: the guest has 2048 "
                                    "MiB, but the VMM is limited to 512 MiB (");
  }

  tests::TempDir root;
};

}  // namespace

TEST_CASE("doctor: a VM with more memory than its pod's limit") {
  MemoryScene scene;
  const auto boot = [&](const std::string& size) {
    scene.root.write("proc/9/cmdline", "qemu\0-m\0"s + size + ",slots=10,maxmem=9000M\0"s);
  };
  scene.root.write("proc/9/cgroup", "0::/kubepods/pod1/s1\n");
  scene.root.write("sys/fs/cgroup/kubepods/pod1/s1/memory.max", "max\n");
  boot("2048M");
  CHECK(scene.found().empty());
  scene.root.write("sys/fs/cgroup/kubepods/pod1/memory.max", "536870912\n");
  CHECK(scene.is_limited());
  boot("2G");
  CHECK(scene.is_limited());
  boot("256M");
  CHECK(scene.found().empty());
}

TEST_CASE("doctor: the memory of Cloud Hypervisor's guest, and limits of cgroup v1") {
  MemoryScene scene;
  scene.root.write("proc/9/cmdline", "cloud-hypervisor\0--api-socket\0/run/x\0"s);
  scene.root.write("proc/9/maps",
                   "00400000-00500000 r-xp 00000000 08:01 7 /usr/bin/cloud-hypervisor\n"
                   "7f0000000000-7f0040000000 rw-s 00000000 00:01 8 /memfd:ch_ram (deleted)\n"
                   "7f0080000000-7f00c0000000 rw-s 00000000 00:01 9 /memfd:ch_ram (deleted)\n");
  scene.root.write("proc/9/cgroup", "4:memory:/kubepods/pod1/s1\n0::/\n");
  const std::string pod = "sys/fs/cgroup/memory/kubepods/pod1/";
  scene.root.write(pod + "memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(scene.found().empty());
  scene.root.write(pod + "memory.limit_in_bytes", "536870912\n");
  CHECK(scene.is_limited());
  scene.root.write("proc/9/maps", "\n7f00\n7f00-\nz\n");
  CHECK(scene.found().empty());
}

TEST_CASE("doctor: processes of a VM's pod that the kernel killed for want of memory") {
  MemoryScene scene;
  scene.root.write("proc/9/cgroup", "0::/kubepods.slice/kubepods-pod1.slice/s1.scope\n");
  const std::string pod = "sys/fs/cgroup/kubepods.slice/kubepods-pod1.slice/";
  const auto events = [&](const std::string& cgroup, int kills) {
    scene.root.write(cgroup + "memory.events",
                     "low 0\nmax 7\noom 3\noom_kill " + std::to_string(kills) + "\n");
  };
  events("sys/fs/cgroup/kubepods.slice/", 5);
  events(pod, 0);
  CHECK(scene.found().empty());
  events(pod, 2);
  CHECK(scene.found() == Lines{"bad memory: sandbox s1: the kernel killed 2 processes of its pod "
                               "for want of memory"});
}

TEST_CASE("doctor: a pod whose VM was killed before anything could see it") {
  MemoryScene scene;
  scene.root.write("etc/kata-containers/configuration.toml", "[runtime]\n");
  const std::string pod =
      "sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/";
  scene.root.write(pod + "memory.events", "oom_kill 1\n");
  const auto found = [&] { return lines_of(cli::examine_killed_pods(scene.root.path())); };
  REQUIRE(found().size() == 1);
  CHECK(found()[0].starts_with(
      "note memory: the kernel killed 1 process of a pod for want of memory, and none runs there"));
  const auto all = cli::examine(scene.root.path());
  CHECK(std::ranges::find(all, "memory", &cli::Symptom::check) != all.end());
  scene.root.write(pod + "pause.scope/cgroup.procs", "71\n");
  CHECK(found().empty());
}
