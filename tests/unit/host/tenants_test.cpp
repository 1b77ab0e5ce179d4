// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/tenants.hpp"

#include "tests/catch.hpp"
#include "tests/fake_node.hpp"

using namespace ka;
using policy::CpuSet;

namespace {

std::string line_of(const host::Tenants& tenants) {
  std::string line;
  for (const host::Tenant& tenant : tenants.list) {
    line += (line.empty() ? "" : "; ") + tenant.directory.string() + ' ' +
            policy::format_list(tenant.cpus) + " x" + std::to_string(tenant.threads.size());
  }
  return line;
}

}  // namespace

TEST_CASE("cgroups that may use a CPU are found with their threads, others are not entered") {
  const tests::FakeNode node;
  node.cgroup_v2();
  node.tenant("system.slice", "0-7", "");
  node.tenant("system.slice/cron.service", "0-7", "71\n72\n");
  node.tenant("kubepods/podu1", "0-7", "");
  node.tenant("kubepods/podu1/c1", "0-3", "81\n");
  node.tenant("kubepods/podu1/c2", "0-5", "82\n83\n84\n");
  node.tenant("kubepods/podu2", "0-3", "");
  node.tenant("kubepods/podu2/c3", "0-7", "91\n");  // cannot be: what is above it bounds it
  const auto cgroups = host::Cgroups::find(node.proc());
  REQUIRE(cgroups);
  const auto tenants = host::tenants_of(*cgroups, CpuSet{4, 5, 6});
  CHECK(line_of(tenants) == "kubepods/podu1/c2 4-5 x3; system.slice/cron.service 4-6 x2");
  CHECK(tenants.unread.empty());
  CHECK(host::tenants_of(*cgroups, CpuSet{63}).list.empty());
}

TEST_CASE("a cgroup without a cpuset inherits its parent's") {
  const tests::FakeNode node;
  node.cgroup_v2();
  node.tenant("a", "2-3", "");
  node.tenant("a/b", "2-3", "7\n");
  std::filesystem::remove(node.cgroup() / "a/b/cpuset.cpus.effective");
  const auto cgroups = host::Cgroups::find(node.proc());
  CHECK(line_of(host::tenants_of(*cgroups, CpuSet{3, 4})) == "a/b 3 x1");
}

TEST_CASE("a cgroup that cannot be read is reported") {
  const tests::FakeNode node;
  node.cgroup_v2();
  node.tenant("a", "2-3", "7\n");
  std::filesystem::remove(node.cgroup() / "a/cgroup.threads");
  std::filesystem::create_directory(node.cgroup() / "a/cgroup.threads");  // EISDIR
  const auto cgroups = host::Cgroups::find(node.proc());
  CHECK(host::tenants_of(*cgroups, CpuSet{3}).unread.size() == 1);
}

TEST_CASE("3,000 containers beside exclusive CPUs are all read, and skipped") {
  const tests::FakeNode node;
  node.cgroup_v2();
  constexpr int kPods = 1500;
  for (int pod = 0; pod < kPods; ++pod) {
    const std::string name = "kubepods/burstable/pod" + std::to_string(pod);
    node.tenant(name, "0-63", "");
    for (const char* container : {"/a", "/b"}) node.tenant(name + container, "0-31", "1\n");
  }
  const auto cgroups = host::Cgroups::find(node.proc());
  const auto tenants = host::tenants_of(*cgroups, CpuSet::range(32, 63));
  CHECK(tenants.list.empty());
  CHECK(tenants.cgroups == 3 * kPods);
}
