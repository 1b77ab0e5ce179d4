// SPDX-License-Identifier: Apache-2.0
// The daemon between a container runtime and kubelet: the runtime's end of NRI is played here, the
// VMM is real, and masks are read from /proc.
#include <unistd.h>

#include <fstream>

#include "tests/catch.hpp"
#include "tests/integration/daemon/programs.hpp"
#include "tests/nri_runtime.hpp"
#include "tests/text.hpp"

using namespace ka;
using policy::CpuSet;
using tests::contains;
using tests::DaemonScene;
using tests::eventually;
using tests::Vm;

namespace {

namespace wire = proto::nri;

/// A daemon that is taken in, and a VM of which nobody has told yet.
struct Scene : DaemonScene {
  explicit Scene(const std::string& more = "")
      : DaemonScene(""), vm(path("").parent_path(), 2), runtime(path("nri.sock").string()) {
    configure("drift_check = 3600\nhousekeeping = \"sandbox\"\nnri_socket = \"" +
              path("nri.sock").string() + "\"\nkubelet_state = \"" +
              path("cpu_manager_state").string() + "\"\n" + more);
    both = tests::allowed(static_cast<int>(::getpid()));
    both = CpuSet{both.first(), both.last()};
    start();
    runtime.accept();
  }

  wire::PodSandbox pod() const {
    wire::PodSandbox pod;
    pod.set_id("s1");
    pod.set_uid("uid-1");
    pod.set_name("cart");
    pod.set_namespace_("shop");
    pod.set_pid(static_cast<std::uint32_t>(vm.pid()));
    return pod;
  }

  wire::ContainerRequest container(const CpuSet& cpus) const {
    wire::ContainerRequest request;
    *request.mutable_pod() = pod();
    request.mutable_container()->set_id("c1");
    request.mutable_container()->set_name("app");
    request.mutable_container()->set_pod_sandbox_id("s1");
    request.mutable_container()->mutable_linux()->mutable_resources()->mutable_cpu()->set_cpus(
        policy::format_list(cpus));
    return request;
  }

  wire::UpdateContainerRequest update(const CpuSet& cpus) const {
    wire::UpdateContainerRequest request;
    *request.mutable_pod() = pod();
    *request.mutable_container() = container(both).container();
    request.mutable_linux_resources()->mutable_cpu()->set_cpus(policy::format_list(cpus));
    return request;
  }

  void begin() {
    wire::PodRequest request;
    *request.mutable_pod() = pod();
    runtime.call("RunPodSandbox", request);
    runtime.call("CreateContainer", container(both));
    runtime.call("StartContainer", container(both));
    runtime.call("PostStartContainer", container(both));
  }

  /// Whether no thread of the VM may run outside `cpus`.
  bool inside(const CpuSet& cpus) const {
    for (const auto& [name, tid] : vm.threads()) {
      if (!tests::allowed(tid).subset_of(cpus)) return false;
    }
    return true;
  }

  /// kubelet gives `cpus` to another pod.
  void admit(const CpuSet& cpus) const {
    std::ofstream(path("fresh"))
        << R"({"policyName":"static","defaultCpuSet":"","entries":{"other":{"app":")"
        << policy::format_list(cpus) << R"("}}})";
    std::filesystem::rename(path("fresh"), path("cpu_manager_state"));
  }

  Vm vm;
  tests::NriRuntime runtime;
  CpuSet both;
};

}  // namespace

TEST_CASE("CPUs are removed before the response to the runtime, and added after it") {
  if (!Vm::possible()) return;
  Scene scene;
  scene.begin();
  const CpuSet first{scene.both.first()};
  CHECK(contains(scene.ctl({"status"}).out, "sandbox s1 (shop/cart)"));
  CHECK(contains(scene.ctl({"status"}).out, "+ nri: containerd v2.3.0"));
  scene.runtime.call("UpdateContainer", scene.update(first));
  CHECK(scene.inside(first));
  scene.runtime.call("PostUpdateContainer", scene.container(first));
  scene.runtime.call("UpdateContainer", scene.update(scene.both));
  CHECK(scene.inside(first));
  scene.runtime.call("PostUpdateContainer", scene.container(scene.both));
  CHECK(eventually([&] { return tests::allowed(scene.vm.pid()) == scene.both; }));
}

TEST_CASE("a pod with the annotation gets files that list its containers' CPUs") {
  if (!Vm::possible()) return;
  Scene scene("allow_annotations = [\"environment\"]\n");
  const auto create = [&scene](const char* id, const std::string& environment) {
    auto request = scene.container(scene.both);
    request.mutable_container()->set_id(id);
    (*request.mutable_pod()->mutable_annotations())["kata-affinity.io/environment"] = environment;
    scene.runtime.call("CreateContainer", request);
    wire::CreateContainerResponse response;
    REQUIRE(response.ParseFromString(scene.runtime.answer().payload));
    return response;
  };
  CHECK_FALSE(create("c1", "false").has_adjust());
  const auto adjust = create("c2", "true").adjust();
  REQUIRE(adjust.mounts_size() == 1);
  const std::filesystem::path folder = adjust.mounts(0).source();
  CHECK(folder == scene.path("kata-affinity/containers/s1/c2"));
  CHECK(contains(tests::read_text(folder / "cpus.json"), "\"version\":1"));
  REQUIRE(adjust.env_size() == 4);
  CHECK(adjust.env(1).value() == policy::format_list(scene.both));

  scene.runtime.call("RemoveContainer", [&] {
    auto request = scene.container(scene.both);
    request.mutable_container()->set_id("c2");
    return request;
  }());
  CHECK(eventually([&] { return !std::filesystem::exists(folder); }));
}

TEST_CASE("a CPU that kubelet assigns to another pod is left before any response") {
  if (!Vm::possible()) return;
  Scene scene;
  scene.begin();
  const CpuSet first{scene.both.first()}, last{scene.both.last()};
  scene.admit(last);
  CHECK(eventually([&] { return scene.inside(first); }, tests::Seconds(2)));
  scene.admit(first);
  scene.runtime.call("StartContainer", scene.container(scene.both));
  CHECK(scene.inside(last));
}

TEST_CASE("after a runtime restarts, NRI reconnects and removed pods are forgotten") {
  if (!Vm::possible()) return;
  Scene scene;
  scene.begin();
  scene.runtime.hang_up();
  CHECK(eventually([&] { return contains(scene.ctl({"status"}).out, "! nri: "); }));
  CHECK(contains(scene.ctl({"status"}).out, "sandbox s1"));
  wire::SynchronizeRequest all;
  *all.add_pods() = scene.pod();
  *all.add_containers() = scene.container(scene.both).container();
  scene.runtime.accept({all});
  CHECK(eventually([&] { return contains(scene.ctl({"status"}).out, "+ nri: "); }));
  CHECK(contains(scene.ctl({"status"}).out, "container c1 (app)"));
  scene.runtime.hang_up();
  scene.runtime.accept();
  CHECK(eventually([&] { return scene.ctl({"status"}).out.starts_with("no VM sandbox"); }));
}

TEST_CASE("a node of 3000 pods is synchronized, and the next event is answered in time") {
  if (!Vm::possible()) return;
  Scene scene;
  scene.begin();
  scene.runtime.hang_up();
  auto all = tests::many_pods(3000);
  CHECK(all.size() > 1);
  *all.back().add_pods() = scene.pod();
  *all.back().add_containers() = scene.container(scene.both).container();
  auto* owner = all.back().mutable_containers(0);
  owner->mutable_linux()->mutable_resources()->mutable_cpu()->set_cpus(
      policy::format_list(CpuSet{scene.both.last()}));
  // A runtime throws a plugin out that has not answered within 2 s. What counts is the daemon's CPU
  // time: how long it waits for a CPU is the machine's affair.
  constexpr double kMost = 2.0 * KA_TEST_SLOWNESS;
  double before = scene.daemon().cpu_seconds();
  scene.runtime.accept(std::move(all));
  CHECK(scene.daemon().cpu_seconds() - before < kMost);
  const CpuSet first{scene.both.first()};
  before = scene.daemon().cpu_seconds();
  scene.runtime.call("StartContainer", scene.container(scene.both));
  CHECK(scene.daemon().cpu_seconds() - before < kMost);
  CHECK(scene.inside(first));
  CHECK(scene.metric("kata_affinity_source_up{source=\"nri\"}") == 1);
}
