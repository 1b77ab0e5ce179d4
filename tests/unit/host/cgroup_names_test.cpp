// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/cgroup_names.hpp"

#include "tests/catch.hpp"

using namespace ka;

namespace {

constexpr const char* kMount = "/sys/fs/cgroup";

std::string own(const std::string& named, const std::string& of_vmm) {
  return host::own_cgroup("s1", named, kMount + of_vmm, kMount).string();
}

}  // namespace

TEST_CASE("a sandbox's own cgroup is named after it, or contains one that is") {
  for (const char* name :
       {"/kubepods/pod1/s1", "/kubepods/pod1/kata_s1", "/kubepods.slice/cri-containerd-s1.scope",
        "/kubepods-pod1.slice:cri-containerd:s1", "/pods/s1/vcpus",
        "/kubepods.slice/kubepods-pod1.slice/crio-s1.scope", "/kubepods/pod1/crio-s1",
        "/kubepods-pod1.slice:crio:s1"}) {
    CAPTURE(name);
    CHECK(own("", name) == std::string(kMount) + name);
  }
  for (const char* name : {"/", "/user.slice", "/pods/s11", "/pods/xs1", "/pods/s1x"}) {
    CAPTURE(name);
    CHECK(own("", name).empty());
  }
}

TEST_CASE("a cgroup named by a source is accepted, except the root and paths outside") {
  CHECK(own("/vms/any", "/user.slice") == "/sys/fs/cgroup/vms/any");
  CHECK(own("vms/any", "/user.slice") == "/sys/fs/cgroup/vms/any");
  CHECK(own("/", "/user.slice").empty());
  CHECK(own("../etc", "/user.slice").empty());
}

TEST_CASE("a libvirt domain is bounded above the cgroups of its threads") {
  for (const char* below :
       {"", "/emulator", "/vcpu0", "/iothread1", "/libvirt", "/libvirt/vcpu3"}) {
    CAPTURE(below);
    CHECK(host::domain_cgroup(std::string("/machine.slice/qemu-1.scope") + below) ==
          "/machine.slice/qemu-1.scope");
  }
}

TEST_CASE("a systemd cgroup is recognized by its unit") {
  CHECK(host::is_systemd_unit("/sys/fs/cgroup/kubepods.slice/cri-containerd-s1.scope"));
  CHECK(host::is_systemd_unit("/sys/fs/cgroup/kubepods.slice/s1"));
  CHECK_FALSE(host::is_systemd_unit("/sys/fs/cgroup/kubepods/pod1/s1"));
}

TEST_CASE(
    "a cgroup is of the innermost service or scope above it, or else of the innermost slice") {
  CHECK(host::unit_of("/system.slice/cron.service") == "cron.service");
  CHECK(host::unit_of("/system.slice/cron.service/worker") == "cron.service");
  CHECK(host::unit_of("/user.slice/user-1.slice/session-2.scope") == "session-2.scope");
  CHECK(host::unit_of("/a.slice/a-b.slice/x") == "a-b.slice");
  CHECK(host::unit_of("/kubepods/pod1").empty());
  for (const char* unit : {"a.slice", "/x/a.scope", "a.service"}) CHECK(host::is_unit_name(unit));
  for (const char* other : {"a", "/a.slice/b", "service", ""}) {
    CHECK_FALSE(host::is_unit_name(other));
  }
}

TEST_CASE("crun's inner cgroup exists only within a scope") {
  CHECK(host::crun_subgroup("/kubepods.slice/crio-d3f0.scope") ==
        "/kubepods.slice/crio-d3f0.scope/container");
  CHECK(host::crun_subgroup("/kubepods/pod1/crio-d3f0").empty());
}

TEST_CASE("kubelet's cgroup names contain a pod's uid, with either driver") {
  struct Row {
    const char* directory;
    const char* uid;
  };
  const Row rows[] = {
      {"kubepods/burstable/pod12-34/abc", "12-34"},
      {"kubepods/pod12-34", "12-34"},
      {"kubepods.slice/kubepods-pod12_34.slice/cri-containerd-abc.scope", "12-34"},
      {"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_34.slice:cri:abc",
       "12-34"},
      {"kubepods.slice/kubepods-besteffort.slice", ""},
      {"system.slice/podman.service", ""},
      {"", ""},
  };
  for (const Row& row : rows) {
    INFO(row.directory);
    CHECK(host::pod_uid_of(row.directory) == row.uid);
  }
}

TEST_CASE("a container's cgroup is found by its id, under each runtime and cgroup driver") {
  const std::string id = "d3f0";
  for (const char* name :
       {"kubepods/pod1/d3f0", "kubepods.slice/cri-containerd-d3f0.scope",
        "kubepods.slice/kubepods-pod1.slice/crio-d3f0.scope", "kubepods/pod1/crio-d3f0",
        "kubepods.slice/kubepods-pod1.slice/crio-d3f0.scope/container"}) {
    CAPTURE(name);
    CHECK(host::is_of_container(name, id));
    CHECK_FALSE(host::is_of_monitor(name));
  }
  for (const char* name :
       {"kubepods.slice/kubepods-pod1.slice/crio-conmon-d3f0.scope", "kubepods/crio-conmon-d3f0",
        "kubepods.slice/crio-1d3f0.scope", "kubepods.slice/crio-d3f01.scope", "kubepods.slice"}) {
    CAPTURE(name);
    CHECK_FALSE(host::is_of_container(name, id));
  }
  CHECK(host::is_of_monitor("kubepods.slice/kubepods-pod1.slice/crio-conmon-d3f0.scope"));
  CHECK(host::container_name("kubepods.slice/crio-d3f0.scope/container") == "crio-d3f0.scope");
  CHECK(host::container_name("kubepods/pod1/crio-d3f0") == "crio-d3f0");
}

TEST_CASE(
    "the cgroup of a container is found around those of its processes, below kubelet's alone") {
  const std::string id(64, '0');
  CHECK(host::container_around("/kubepods.slice/a.slice/cri-containerd-" + id +
                               ".scope/init.scope") ==
        "/kubepods.slice/a.slice/cri-containerd-" + id + ".scope");
  CHECK(host::container_around("/kubepods/pod1/" + id) == "/kubepods/pod1/" + id);
  CHECK(host::container_around("/kubepods/pod1/crio-" + id + "/container") ==
        "/kubepods/pod1/crio-" + id);
  for (const std::string& other :
       {"/system.slice/docker-" + id + ".scope", "/kubepods/pod1/" + id.substr(1),
        std::string("/kubepods/pod1/x"), std::string("/"), "/kubepods" + id}) {
    CAPTURE(other);
    CHECK(host::container_around(other).empty());
  }
}

TEST_CASE("cgroups from a container's up to its pod's, and none of kubelet's own above") {
  using Way = std::vector<std::string>;
  const std::string id(64, '0');
  const std::string pod = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice";
  CHECK(host::way_to_pod(pod + "/crio-" + id + ".scope/container") ==
        Way{pod + "/crio-" + id + ".scope", pod});
  CHECK(host::way_to_pod("/kubepods/pod1/" + id + "/kata-affinity") ==
        Way{"/kubepods/pod1/" + id, "/kubepods/pod1"});
  CHECK(host::way_to_pod("/kubepods/pod1/s1") == Way{"/kubepods/pod1/s1", "/kubepods/pod1"});
  for (const char* other : {"/", "/kubepods", "/kubepods/burstable", "/machine.slice/qemu.scope"}) {
    CAPTURE(other);
    CHECK(host::way_to_pod(other).empty());
  }
}

TEST_CASE("the directory of the cgroup that a runtime names, by either driver") {
  const auto directory = [](const std::string& named) {
    return host::container_cgroup(named, "d3f0", kMount).string();
  };
  CHECK(directory("/kubepods/pod1/crio-d3f0") == "/sys/fs/cgroup/kubepods/pod1/crio-d3f0");
  CHECK(directory("kubepods-burstable-pod1.slice:crio:d3f0") ==
        "/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/"
        "crio-d3f0.scope");
  CHECK(directory("a.slice:/etc/x:d3f0") == "/sys/fs/cgroup/etc/x-d3f0.scope");
  for (const char* name : {"/kubepods/pod1/crio-d3f1", "kubepods-pod1.slice:crio:d3f1",
                           "kubepods-pod1.slice:d3f0", "../crio-d3f0", ""}) {
    CAPTURE(name);
    CHECK(directory(name).empty());
  }
}

TEST_CASE("a pod's quality of service is in the name of its cgroup, under each cgroup driver") {
  for (const char* cgroup :
       {"/kubepods/pod1", "kubepods-pod1.slice", "/kubepods.slice/kubepods-pod1.slice"}) {
    CHECK(host::is_guaranteed_pod(cgroup));
  }
  for (const char* cgroup :
       {"/kubepods/burstable/pod1", "kubepods-burstable-pod1.slice", "/kubepods/besteffort/pod1",
        "kubepods-besteffort-pod1.slice", "/system.slice/pod1", ""}) {
    CHECK_FALSE(host::is_guaranteed_pod(cgroup));
  }
}

TEST_CASE("inside means below or equal") {
  CHECK(host::is_inside("/a/b", "/a"));
  CHECK(host::is_inside("/a", "/a"));
  CHECK_FALSE(host::is_inside("/ab", "/a"));
  CHECK_FALSE(host::is_inside("/", "/a"));
}
