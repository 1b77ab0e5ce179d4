// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/container_process.hpp"

#include "tests/catch.hpp"
#include "tests/fake_node.hpp"

using namespace ka;

TEST_CASE("a process of a container is found by the names of cgroups, under each driver") {
  const std::string id(64, 'd');
  tests::FakeNode node;
  node.cgroup_v2();
  node.process(70, 1, "db", "/usr/bin/db");
  node.process(71, 70, "db", "/usr/bin/db");
  const auto cgroups = host::Cgroups::find(node.proc());
  REQUIRE(cgroups);
  const auto find = [&] {
    return host::container_process(*cgroups, base::ProcFs(node.proc()), "u-1", id);
  };
  CHECK(find().error().code == base::ErrorCode::kNotFound);
  SECTION("systemd") {
    const std::string pod = "kubepods.slice/kubepods-podu_1.slice/";
    node.cgroup_procs(pod + "crio-conmon-" + id + ".scope", "60\n");
    node.cgroup_procs(pod + "cri-containerd-" + id + ".scope", "71\n70\n");
  }
  SECTION("cgroupfs") { node.cgroup_procs("kubepods/podu-1/" + id, "70\n"); }
  SECTION("crun has another one in it") {
    const std::string scope = "kubepods.slice/kubepods-podu_1.slice/crio-" + id + ".scope";
    node.cgroup_procs(scope, "");
    node.cgroup_procs(scope + "/container", "70\n71\n");
  }
  const auto found = find();
  REQUIRE(found);
  CHECK(*found == policy::ThreadKey{70, 70, base::ProcFs(node.proc()).stat(70, 70)->start_time});
}
