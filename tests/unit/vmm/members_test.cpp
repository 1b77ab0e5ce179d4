// SPDX-License-Identifier: Apache-2.0
// Which processes of a sandbox's cgroup are the sandbox's.
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/discovery.hpp"
#include "tests/fake_node.hpp"
#include "tests/unit/vmm/fixture.hpp"

using namespace ka;
using tests::FakeNode;
using tests::Roles;
using tests::roles;
using tests::roots_of;

namespace {

constexpr int kVmm = 4000;

/// A VMM with its shim.
void boot(const FakeNode& node) {
  node.process(3001, 1, "containerd-shim", "/usr/bin/containerd-shim-kata-v2");
  node.process(kVmm, 3001, "qemu-system-x86", "/usr/bin/qemu-system-x86_64");
}

vmm::Target target_of(const std::string& cgroup, bool is_named) {
  return {
      .vmm = tests::process_id(kVmm), .cgroup = cgroup, .proxy = {}, .is_cgroup_named = is_named};
}

}  // namespace

TEST_CASE("of a cgroup that an operator named, only what the VMM or its shim started is its own") {
  const FakeNode node;
  boot(node);
  node.process(3200, kVmm, "passt", "/usr/bin/passt");
  node.process(3201, 3200, "worker", "/usr/bin/worker");
  node.process(3202, 3001, "swtpm", "/usr/bin/swtpm");
  node.process(3300, 1, "nydusd", "/usr/bin/nydusd");
  node.process(3301, 1, "sleep", "/bin/sleep");
  const std::string cgroup = node.cgroup_procs("kata_s", "3001\n3200\n3202\n3300\n4000\n");
  node.cgroup_procs("kata_s/below", "3201\n3301\n");
  const Roles own = {
      {3001, "shim"}, {3200, "helper"}, {3201, "helper"}, {3202, "helper"}, {4000, "emulator"}};
  tests::Discovery named(roots_of(node), target_of(cgroup, true));
  const auto found = named.observe(nullptr);
  REQUIRE(found);
  CHECK(roles(*found) == own);
  CHECK(found->foreign ==
        std::vector<std::string>{"process 3300 \"nydusd\" in its cgroup was not started by the VMM "
                                 "or its shim",
                                 "process 3301 \"sleep\" in its cgroup was not started by the VMM "
                                 "or its shim"});

  node.thread(3200, 3200, "passt", 1);  // whoever started it has ended
  CHECK(roles(*named.observe(nullptr)) == own);
  named.forget();
  CHECK(roles(*named.observe(nullptr)) == own);
  node.thread(3200, 3200, "passt", 1, 7);  // another process by now
  named.forget();
  CHECK_FALSE(roles(*named.observe(nullptr)).contains(3200));

  tests::Discovery made_by_runtime(roots_of(node), target_of(cgroup, false));
  const auto all = made_by_runtime.observe(nullptr);
  REQUIRE(all);
  CHECK(roles(*all).size() == own.size() + 2);
  CHECK(roles(*all).at(3300) == "helper");
  CHECK(all->foreign.empty());
}

TEST_CASE("another sandbox's VMM and what it started are helpers in nobody's cgroup") {
  const bool is_named = GENERATE(true, false);
  CAPTURE(is_named);
  const FakeNode node;
  boot(node);
  node.process(3200, kVmm, "passt", "/usr/bin/passt");
  node.process(5000, 1, "qemu-system-x86", "/usr/bin/qemu-system-x86_64");
  node.process(5001, 5000, "passt", "/usr/bin/passt");
  const std::string cgroup = node.cgroup_procs("kata_s", "3200\n4000\n");
  node.cgroup_procs("kata_s/below", "5000\n5001\n");
  tests::Discovery discovery(roots_of(node), target_of(cgroup, is_named));
  CHECK(roles(*discovery.observe(nullptr)).contains(5000) != is_named);
  discovery.add_neighbour(tests::process_id(5000), "h");
  const auto found = discovery.observe(nullptr);
  REQUIRE(found);
  CHECK(roles(*found) == Roles{{3001, "shim"}, {3200, "helper"}, {4000, "emulator"}});
  REQUIRE(found->foreign.size() == 2);
  CHECK(found->foreign.front() ==
        "process 5000 \"qemu-system-x86\" in its cgroup belongs to sandbox \"h\"");
}

TEST_CASE("a helper whose descent cannot be read stays one") {
  const FakeNode node;
  boot(node);
  node.process(3100, kVmm, "sh", "/bin/sh");
  node.process(3200, 3100, "passt", "/usr/bin/passt");
  const std::string cgroup = node.cgroup_procs("kata_s", "3200\n4000\n");
  tests::Discovery discovery(roots_of(node), target_of(cgroup, true));
  REQUIRE(roles(*discovery.observe(nullptr)).contains(3200));
  const auto restore = node.make_unreadable("proc/3100/task/3100/stat");
  const auto found = discovery.observe(nullptr);
  REQUIRE(found);
  CHECK(roles(*found).contains(3200));
  CHECK_FALSE(found->trouble.empty());
  restore();
  CHECK(discovery.observe(nullptr)->trouble.empty());
}

TEST_CASE("a foreign cgroup full of processes is named in a few sentences") {
  const FakeNode node;
  boot(node);
  std::string pids = "4000\n";
  for (int pid = 5000; pid < 5020; ++pid) {
    node.process(pid, 1, "sleep", "/bin/sleep");
    pids += std::to_string(pid) + '\n';
  }
  tests::Discovery discovery(roots_of(node), target_of(node.cgroup_procs("kata_s", pids), true));
  const auto found = discovery.observe(nullptr);
  REQUIRE(found);
  CHECK(found->foreign.size() == 9);
  CHECK(found->foreign.back() == "12 more processes in its cgroup are not the sandbox's");
}
