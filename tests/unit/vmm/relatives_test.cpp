// SPDX-License-Identifier: Apache-2.0
// Processes beside a VMM: what cannot be read is not taken for absent.
#include "vmm/procfs/relatives.hpp"

#include <filesystem>
#include <vector>

#include "tests/catch.hpp"
#include "tests/fake_node.hpp"
#include "tests/without_rights.hpp"

using namespace ka;
using tests::FakeNode;
using tests::process_id;
using tests::without_rights;

TEST_CASE("a proxy that cannot be read is not gone") {
  const FakeNode node;
  CHECK(is_gone(vmm::find_proxy(node.proc(), 3000)));
  node.process(3000, 1, "containerd-shim", "/usr/bin/containerd-shim-kata-affinity-v2");
  CHECK(vmm::find_proxy(node.proc(), 3000) == process_id(3000));
  const auto restore_exe = node.make_unreadable("proc/3000/exe");
  CHECK(vmm::find_proxy(node.proc(), 3000) == process_id(3000));
  const auto restore_line = node.make_unreadable("proc/3000/cmdline");
  const auto unread = vmm::find_proxy(node.proc(), 3000);
  REQUIRE_FALSE(unread);
  CHECK_FALSE(is_gone(unread));
  restore_exe();
  restore_line();
  node.process(3001, 1, "sh", "/bin/sh");
  CHECK(is_gone(vmm::find_proxy(node.proc(), 3001)));
}

TEST_CASE("256 cgroups and 4096 processes of a sandbox are read, more are not passed over") {
  const FakeNode node;
  const auto [cgroups, processes] =
      GENERATE(std::pair(255, 4096), std::pair(256, 4096), std::pair(255, 4097));
  std::string pids;
  for (int pid = 1; pid <= processes; ++pid) pids += std::to_string(pid) + '\n';
  const std::filesystem::path cgroup = node.cgroup_procs("kata_s", pids);
  for (int i = 0; i < cgroups; ++i) node.cgroup_procs("kata_s/" + std::to_string(i), "");
  base::Trouble trouble;
  const auto members = vmm::cgroup_members(cgroup, trouble);
  CHECK(members.pids.size() == 4096);
  CHECK(members.is_cut == (cgroups > 255 || processes > 4096));
}

TEST_CASE("64 virtiofsd processes of a sandbox are read, one more is trouble") {
  const FakeNode node;
  const int number = GENERATE(64, 65);
  node.process(100, 1, "qemu-system-x86", "/usr/bin/qemu-system-x86_64");
  std::string children;
  for (int i = 0; i < number; ++i) {
    node.process(200 + i, 100, "virtiofsd", "/usr/libexec/virtiofsd");
    children += std::to_string(200 + i) + ' ';
  }
  node.children(100, children);
  base::Trouble trouble;
  CHECK(vmm::virtiofsd_children(node.proc(), {100}, trouble).size() == 64);
  CHECK(trouble.none() == (number == 64));
}

TEST_CASE("cgroups that cannot be listed are trouble") {
  const FakeNode node;
  const std::filesystem::path cgroup = node.cgroup_procs("kata_s", "3200\n");
  node.cgroup_procs("kata_s/below", "3300\n");
  const auto members = [&](base::Trouble& trouble) {
    return vmm::cgroup_members(cgroup, trouble).pids;
  };
  base::Trouble none;
  CHECK(members(none) == std::vector{3200, 3300});
  CHECK(none.none());

  std::filesystem::permissions(node.proc().parent_path(), std::filesystem::perms(0755));
  std::filesystem::permissions(cgroup, std::filesystem::perms(0311));
  base::Trouble trouble;
  CHECK(without_rights([&] { return members(trouble); }) == std::vector{3200});
  CHECK(trouble.refused());
  std::filesystem::permissions(cgroup, std::filesystem::perms(0755));
}
