// SPDX-License-Identifier: Apache-2.0
// NRI's answers where we give containers their CPUs, and what we are told of a container.
#include "shim-ext/nri/allocator.hpp"

#include <string>

#include "tests/catch.hpp"
#include "tests/unit/shim-ext/nri_scene.hpp"

using namespace ka;
using namespace ka::tests;

namespace {

wire::ContainerRequest about(const wire::PodSandbox& pod, const wire::Container& container) {
  wire::ContainerRequest request;
  *request.mutable_pod() = pod;
  *request.mutable_container() = container;
  return request;
}

}  // namespace

TEST_CASE("answers carry the CPUs of the container and of others, or refuse it") {
  NriScene scene;
  scene.start();
  scene.handshake();
  auto pod = nri_pod("s1", 100);
  pod.mutable_linux()->set_cgroup_parent("/kubepods/pods1-uid");
  auto container = nri_container("s1", "c1", "");
  container.mutable_linux()->set_cgroups_path("/kubepods/pods1-uid/c1");
  scene.diary.adjustment.sets = {"c1", {4, 5}, {1}};
  scene.diary.adjustment.updates = {{"c0", {0, 1}, {}}};
  wire::CreateContainerResponse created;
  REQUIRE(created.ParseFromString(scene.call("CreateContainer", about(pod, container)).payload));
  CHECK(created.adjust().linux().resources().cpu().cpus() == "4-5");
  CHECK(created.adjust().linux().resources().cpu().mems() == "1");
  REQUIRE(created.update_size() == 1);
  CHECK(created.update(0).container_id() == "c0");
  CHECK(created.update(0).ignore_failure());
  CHECK(created.update(0).linux().resources().cpu().cpus() == "0-1");
  CHECK(created.update(0).linux().resources().cpu().mems().empty());

  scene.diary.updates = {{"c0", {0, 1, 4, 5}, {}}};
  wire::StopContainerResponse stopped;
  REQUIRE(stopped.ParseFromString(scene.call("StopContainer", about(pod, container)).payload));
  REQUIRE(stopped.update_size() == 1);
  CHECK(stopped.update(0).linux().resources().cpu().cpus() == "0-1,4-5");

  scene.diary.refusal = "2 CPUs requested, 1 available";
  const auto refused = scene.call("CreateContainer", about(pod, container));
  CHECK(refused.code != rpc::Code::kOk);
  CHECK(refused.message == "2 CPUs requested, 1 available");
  CHECK(scene.call("UpdateContainer", about(pod, container)).code != rpc::Code::kOk);
}

TEST_CASE("a container is described with its memory, huge pages and devices, and its pod's") {
  NriScene scene;
  scene.start();
  scene.handshake();
  auto pod = nri_pod("s1", 100);
  auto& of_pod = *pod.mutable_linux()->mutable_pod_resources();
  of_pod.mutable_cpu()->mutable_quota()->set_value(350000);
  of_pod.mutable_cpu()->mutable_period()->set_value(100000);
  of_pod.mutable_memory()->mutable_limit()->set_value(4096);
  auto container = nri_container("s1", "c1", "");
  auto& linux_part = *container.mutable_linux();
  linux_part.mutable_resources()->mutable_memory()->mutable_limit()->set_value(1024);
  const auto add_huge = [&](const char* size, std::uint64_t limit) {
    auto& huge = *linux_part.mutable_resources()->add_hugepage_limits();
    huge.set_page_size(size);
    huge.set_limit(limit);
  };
  add_huge("2MB", 1 << 22);
  add_huge("1GB", 0);
  add_huge("99999999999GB", 1);
  add_huge("2", 1);
  const auto add_device = [&](const char* type, std::int64_t number) {
    auto& device = *linux_part.add_devices();
    device.set_type(type);
    device.set_major(number);
    device.set_minor(number + 1);
  };
  add_device("c", 195);
  add_device("b", 8);
  add_device("c", -2);
  add_device("c", std::int64_t{1} << 40);
  scene.call("CreateContainer", about(pod, container));
  const nri::Described& described = scene.diary.described;
  using policy::managed::kOrdinaryPage;
  CHECK(described.needs.memory ==
        std::map<std::uint64_t, std::uint64_t>{{kOrdinaryPage, 1024}, {1 << 21, 1 << 22}});
  CHECK(described.devices == std::vector<nri::DeviceNumber>{{false, 195, 196}, {true, 8, 9}});
  CHECK(described.pod.cpus == 4);
  CHECK(described.outside_vm);
  CHECK(described.pod.needs.memory.at(kOrdinaryPage) == 4096);
  scene.call("CreateContainer", about(nri_pod("s2", 0), nri_container("s2", "c2", "")));
  CHECK_FALSE(scene.diary.described.outside_vm);
}

TEST_CASE("a container is described with its pod, its limit and the class that is asked for") {
  NriScene scene;
  scene.start();
  scene.handshake();
  auto pod = nri_pod("s1", 100);
  const auto create = [&] {
    scene.call("CreateContainer", about(pod, nri_container("s1", "c1", "")));
    return scene.diary.described.candidate;
  };
  CHECK(create() == policy::managed::Candidate{.sandbox = "s1",
                                               .id = "c1",
                                               .pod_uid = "s1-uid",
                                               .pod_name = "ns/s1-name",
                                               .name = "app",
                                               .guaranteed = false,
                                               .requested = {},
                                               .quota = 200000,
                                               .period = 100000});
  pod.mutable_linux()->set_cgroup_parent("kubepods-pods1_uid.slice");
  create();
  CHECK(scene.diary.described.pod_cgroup == "kubepods-pods1_uid.slice");
  auto& annotations = *pod.mutable_annotations();
  annotations["qos.gocrane.io/cpu-manager"] = "none";
  CHECK(create().requested == "none");
  annotations["kata-affinity.io/cpu-manager"] = "share";
  CHECK(create().requested == "share");
  annotations["kata-affinity.io/cpu-manager.app"] = "exclusive";
  CHECK(create().requested == "exclusive");
}
