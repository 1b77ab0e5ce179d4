// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.hpp"
#include "policy/facts/annotations.hpp"
#include "tests/unit/shim-ext/nri_scene.hpp"

using namespace ka;
using namespace ka::tests;
using Lines = std::vector<std::string>;

namespace {

wire::ContainerRequest about(const wire::PodSandbox& pod, const wire::Container& container) {
  wire::ContainerRequest request;
  *request.mutable_pod() = pod;
  *request.mutable_container() = container;
  return request;
}

wire::PodRequest about(const wire::PodSandbox& pod) {
  wire::PodRequest request;
  *request.mutable_pod() = pod;
  return request;
}

wire::UpdateContainerRequest update(const wire::PodSandbox& pod, const wire::Container& container,
                                    const std::string& cpus) {
  wire::UpdateContainerRequest request;
  *request.mutable_pod() = pod;
  *request.mutable_container() = container;
  request.mutable_linux_resources()->mutable_cpu()->set_cpus(cpus);
  return request;
}

}  // namespace

TEST_CASE("the plugin registers, subscribes and synchronizes") {
  NriScene scene;
  scene.vmm_pids = {100};
  scene.start();
  NriPeer& peer = scene.accept();
  CHECK(peer.requests[0].service == "nri.pkg.api.v1alpha1.Runtime");
  CHECK(peer.requests[0].method == "RegisterPlugin");
  wire::RegisterPluginRequest registration;
  REQUIRE(registration.ParseFromString(peer.requests[0].payload));
  CHECK(registration.plugin_name() == "kata-affinity");
  CHECK(registration.plugin_idx() == "90");
  CHECK(scene.configure("containerd", "v2.3.1", "v0.12.0") == 0x17ff);

  wire::SynchronizeRequest part;
  *part.add_pods() = nri_pod("s1", 100);
  *part.add_pods() = nri_pod("s2", 200);
  part.set_more(true);
  wire::SynchronizeResponse answer;
  REQUIRE(answer.ParseFromString(scene.call("Synchronize", part).payload));
  CHECK(answer.more());
  CHECK(scene.diary.drain().empty());
  wire::SynchronizeRequest rest;
  *rest.add_containers() = nri_container("s1", "c1", "4-5");
  wire::Container stopped = nri_container("s2", "c2", "6");
  stopped.set_state(4);
  *rest.add_containers() = stopped;
  REQUIRE(answer.ParseFromString(scene.call("Synchronize", rest).payload));
  CHECK_FALSE(answer.more());
  CHECK(scene.diary.drain() ==
        Lines{"connected containerd v2.3.1",
              "all(pod s1 vm 100; pod s2; container s1/c1 4-5; container s2/c2 6 exited)"});
  CHECK(scene.vmm_questions == 2);
}

TEST_CASE("a container's life, reported by separate calls") {
  NriScene scene;
  scene.vmm_pids = {100};
  scene.start();
  scene.handshake();
  const auto pod = nri_pod("s1", 100);
  const auto container = nri_container("s1", "c1", "4-5");
  scene.call("RunPodSandbox", about(pod));
  CHECK(scene.diary.drain() == Lines{"before(pod s1 vm 100)", "after s1(pod s1 vm 100)"});
  scene.call("CreateContainer", about(pod, container));
  CHECK(scene.diary.drain() == Lines{"before(container s1/c1 4-5)"});
  CHECK(scene.diary.reports.at("c1").begins);
  scene.call("PostCreateContainer", about(pod, container));
  CHECK(scene.diary.drain() == Lines{"after s1(container s1/c1 4-5)"});
  CHECK_FALSE(scene.diary.reports.at("c1").begins);
  scene.call("StartContainer", about(pod, container));
  CHECK(scene.diary.drain() == Lines{"before(container s1/c1 4-5)"});
  auto running = container;
  running.set_state(3);
  scene.call("PostStartContainer", about(pod, running));
  CHECK(scene.diary.drain() == Lines{"after s1(container s1/c1 4-5)"});
  CHECK(scene.diary.reports.at("c1").begins);
  scene.call("UpdateContainer", update(pod, container, "6-7"));
  CHECK(scene.diary.drain() == Lines{"before(container s1/c1 6-7)"});
  scene.call("PostUpdateContainer", about(pod, nri_container("s1", "c1", "6-7")));
  CHECK(scene.diary.drain() == Lines{"after s1(container s1/c1 6-7)"});
  scene.call("StopContainer", about(pod, container));
  CHECK(scene.diary.drain() == Lines{"after s1(exited c1)"});
  scene.call("RemoveContainer", about(pod, container));
  CHECK(scene.diary.drain() == Lines{"after s1(gone c1)"});
  scene.call("StopPodSandbox", about(pod));
  CHECK(scene.diary.drain().empty());
  scene.call("RemovePodSandbox", about(pod));
  CHECK(scene.diary.drain() == Lines{"after s1(gone s1)"});
  CHECK(scene.diary.methods.size() == 11);
}

TEST_CASE("a pod may name its libvirt domain") {
  NriScene scene;
  scene.start();
  scene.handshake();
  auto pod_with = [&scene, number = 0](const std::string& value) mutable {
    auto pod = nri_pod("s" + std::to_string(++number), 0);
    (*pod.mutable_annotations())["kata-affinity.io/libvirt_domain"] = value;
    (*pod.mutable_annotations())["kata-affinity.io/housekeeping"] = "0-7";
    scene.call("RunPodSandbox", about(pod));
    return scene.diary.drain().at(0);
  };
  CHECK(pod_with("vm1") == "before(pod s1 domain vm1)");
  CHECK(pod_with("") == "before(pod s2)");
  CHECK(pod_with("vm1\nno line of ours") == "before(pod s3)");
  CHECK(pod_with(std::string(256, 'x')) == "before(pod s4)");
}

TEST_CASE("a pod asks for resource classes by the annotations of nri-plugins") {
  NriScene scene;
  scene.start();
  scene.handshake();
  auto pod = nri_pod("s1", 0);
  auto& annotations = *pod.mutable_annotations();
  annotations["scheduling-class.resource-policy.nri.io/container.app"] = "gold";
  annotations["blockioclass.resource-policy.nri.io"] = "fast";
  annotations["blockioclass.resource-policy.nri.io/container.db"] = "no\nline";
  annotations["cpu-class.resource-policy.nri.io"] = "turbo";
  annotations["cpu-c-states.crio.io/app"] = "max_latency:5";
  annotations["cpu-shared.crio.io/app"] = "enable";
  scene.call("RunPodSandbox", about(pod));
  CHECK(scene.diary.drain().at(0) ==
        "before(pod s1 blockioclass.resource-policy.nri.io=fast "
        "cpu-c-states.crio.io/app=max_latency:5 "
        "scheduling-class.resource-policy.nri.io/container.app=gold)");
}

TEST_CASE("of a pod's requests for classes as many as the limit are read") {
  const auto read = [](std::size_t count, std::size_t length) {
    NriScene scene;
    scene.start();
    scene.handshake();
    auto pod = nri_pod("s1", 0);
    const std::string key = "blockioclass.resource-policy.nri.io/container.";
    for (std::size_t i = 0; i < count; ++i) {
      (*pod.mutable_annotations())[key + std::to_string(i)] = std::string(length, 'x');
    }
    scene.call("RunPodSandbox", about(pod));
    const std::string line = scene.diary.drain().at(0);
    return std::ranges::count(line, '=');
  };
  constexpr auto kMost = static_cast<std::ptrdiff_t>(policy::kMaxAnnotations);
  CHECK(read(policy::kMaxAnnotations, 1) == kMost);
  CHECK(read(policy::kMaxAnnotations + 1, 1) == kMost);
  CHECK(read(1, base::kMaxName) == 1);
  CHECK(read(1, base::kMaxName + 1) == 0);
}

TEST_CASE("a pod requests a grade by annotation, and other values are known as such") {
  NriScene scene;
  scene.start();
  scene.handshake();
  const auto reported = [&scene](const std::string& id, const std::string& value) {
    auto pod = nri_pod(id, 0);
    (*pod.mutable_annotations())["kata-affinity.io/grade"] = value;
    scene.call("RunPodSandbox", about(pod));
    return scene.diary.drain().at(0);
  };
  CHECK(reported("s1", "quiet") == "before(pod s1 grade quiet)");
  CHECK(reported("s2", "best-effort") == "before(pod s2 grade best-effort)");
  CHECK(reported("s3", "no\nline") == "before(pod s3 grade unknown)");
}

TEST_CASE("a created container can be adjusted, if its pod may request it") {
  NriScene scene;
  scene.start();
  scene.handshake();
  auto pod = nri_pod("s1", 100);
  const auto create = [&] {
    const auto answer = scene.call("CreateContainer", about(pod, nri_container("s1", "c1", "4-5")));
    wire::CreateContainerResponse response;
    CHECK(answer.code == rpc::Code::kOk);
    REQUIRE(response.ParseFromString(answer.payload));
    return response;
  };
  CHECK_FALSE(create().has_adjust());
  CHECK(scene.diary.created == "s1/c1");

  scene.diary.adjustment = {{{"/run/of/c1", "/run/kata-affinity"}}, {{"CPUS", "4-5"}}};
  const auto adjusted = create().adjust();
  REQUIRE(adjusted.mounts_size() == 1);
  CHECK(adjusted.mounts(0).source() == "/run/of/c1");
  CHECK(adjusted.mounts(0).destination() == "/run/kata-affinity");
  CHECK(adjusted.mounts(0).type() == "bind");
  CHECK(std::ranges::count(adjusted.mounts(0).options(), "ro") == 1);
  REQUIRE(adjusted.env_size() == 1);
  CHECK(adjusted.env(0).key() == "CPUS");
  CHECK(adjusted.env(0).value() == "4-5");

  for (const auto& [value, words] : {std::pair{"true", "s1/c1 wanted"},
                                     {"false", "s1/c1 not wanted"},
                                     {"maybe", "s1/c1"},
                                     {"", "s1/c1"}}) {
    (*pod.mutable_annotations())["kata-affinity.io/environment"] = value;
    create();
    CHECK(scene.diary.created == words);
  }
  CHECK(scene.log_lines.find("neither true nor false") != std::string::npos);
}

TEST_CASE("the same by StateChange, as runtimes before 0.12 report it") {
  NriScene scene;
  scene.vmm_pids = {100};
  scene.start();
  scene.handshake();
  const auto state_change = [&](int number, const std::string& cpus) {
    wire::StateChangeEvent event;
    event.set_event(number);
    *event.mutable_pod() = nri_pod("s1", 100);
    if (!cpus.empty()) *event.mutable_container() = nri_container("s1", "c1", cpus);
    CHECK(scene.call("StateChange", event).code == rpc::Code::kOk);
    return scene.diary.drain();
  };
  CHECK(state_change(1, "") == Lines{"before(pod s1 vm 100)", "after s1(pod s1 vm 100)"});
  CHECK(state_change(5, "4-5") == Lines{"after s1(container s1/c1 4-5)"});
  CHECK(state_change(6, "4-5") == Lines{"before(container s1/c1 4-5)"});
  CHECK(state_change(9, "6") == Lines{"after s1(container s1/c1 6)"});
  CHECK(state_change(11, "6") == Lines{"after s1(gone c1)"});
  CHECK(state_change(3, "") == Lines{"after s1(gone s1)"});
  CHECK(state_change(99, "").empty());
}

namespace {

/// How a runtime with one version of NRI speaks (docs/understand/sources.md): who it says that it
/// is, and which events are calls of their own.
struct Dialect {
  std::string runtime, version, nri;
  std::int32_t mask;
  bool pods_resize;  ///< it knows UpdatePodSandbox
  bool by_name;      ///< else StateChange
};

const std::vector<Dialect> kDialects{
    {"containerd", "v1.7.0", "", 0x7ff, false, false},        // 0.3
    {"containerd", "1.7.24~ds1", "", 0x7ff, false, false},    // 0.6
    {"containerd", "v2.1.5", "", 0x7ff, false, false},        // 0.8
    {"cri-o", "1.33.4", "", 0x7ff, false, false},             // 0.9
    {"containerd", "v2.2.0", "", 0x17ff, true, false},        // 0.10
    {"cri-o", "1.35.0", "", 0x17ff, true, false},             // 0.11
    {"containerd", "v2.3.0", "v0.12.0", 0x17ff, true, true},  // 0.12
    {"another", "1.0", "0.12.1", 0x17ff, true, true},
};

/// Tells of an event as the dialect does; what the plugin told of it then.
Lines speak(NriScene& scene, const Dialect& dialect, nri::Event event, const std::string& cpus) {
  const auto pod = nri_pod("s1", 100);
  const auto container = nri_container("s1", "c1", cpus);
  if (dialect.by_name) {
    CHECK(scene.call(std::string(nri::rule_of(event)->method), about(pod, container)).code ==
          rpc::Code::kOk);
    return scene.diary.drain();
  }
  wire::StateChangeEvent message;
  message.set_event(static_cast<int>(event));
  *message.mutable_pod() = pod;
  *message.mutable_container() = container;
  CHECK(scene.call("StateChange", message).code == rpc::Code::kOk);
  return scene.diary.drain();
}

}  // namespace

TEST_CASE("every version of NRI from 0.3 to 0.12 reports the same") {
  for (const Dialect& dialect : kDialects) {
    CAPTURE(dialect.runtime, dialect.version);
    NriScene scene;
    scene.vmm_pids = {100};
    scene.start();
    scene.accept();
    CHECK(scene.configure(dialect.runtime, dialect.version, dialect.nri) == dialect.mask);
    scene.call("Synchronize", wire::SynchronizeRequest());
    scene.diary.drain();
    const auto pod = nri_pod("s1", 100);
    const auto container = nri_container("s1", "c1", "4-5");
    using nri::Event;
    CHECK(speak(scene, dialect, Event::kRunPodSandbox, "").size() == 2);
    scene.call("CreateContainer", about(pod, container));
    CHECK(scene.diary.drain() == Lines{"before(container s1/c1 4-5)"});
    CHECK(speak(scene, dialect, Event::kPostCreateContainer, "4-5").size() == 1);
    CHECK(speak(scene, dialect, Event::kStartContainer, "4-5") ==
          Lines{"before(container s1/c1 4-5)"});
    if (dialect.pods_resize) {
      CHECK(scene.call("UpdatePodSandbox", about(pod)).code == rpc::Code::kOk);
      scene.diary.drain();
      CHECK(speak(scene, dialect, Event::kPostUpdatePodSandbox, "") == Lines{"after s1()"});
    }
    scene.call("UpdateContainer", update(pod, container, "6-7"));
    CHECK(scene.diary.drain() == Lines{"before(container s1/c1 6-7)"});
    CHECK(speak(scene, dialect, Event::kPostUpdateContainer, "6-7") ==
          Lines{"after s1(container s1/c1 6-7)"});
    scene.call("StopContainer", about(pod, container));
    CHECK(scene.diary.drain() == Lines{"after s1(exited c1)"});
    CHECK(speak(scene, dialect, Event::kRemoveContainer, "6-7") == Lines{"after s1(gone c1)"});
    CHECK(speak(scene, dialect, Event::kRemovePodSandbox, "") == Lines{"after s1(gone s1)"});
  }
}

TEST_CASE("an empty set of CPUs is not reported: it means unchanged") {
  NriScene scene;
  scene.start();
  scene.handshake();
  const auto pod = nri_pod("s1", 0);
  scene.call("CreateContainer", about(pod, nri_container("s1", "c1", "4-5")));
  scene.diary.drain();
  scene.call("UpdateContainer", update(pod, nri_container("s1", "c1", "0-3"), ""));
  CHECK(scene.diary.drain() == Lines{"before(container s1/c1 unchanged)"});
  // Of a container that is new to the ledger, the old spec is what there is.
  CHECK(scene.diary.reports["c1"].before.cpus == policy::CpuSet{0, 1, 2, 3});
  scene.call("PostUpdateContainer", about(pod, nri_container("s1", "c1", "")));
  CHECK(scene.diary.drain() == Lines{"after s1(container s1/c1 unchanged)"});
}

TEST_CASE("quota and period come with the spec, and updates report changes") {
  NriScene scene;
  scene.start();
  scene.handshake();
  const auto pod = nri_pod("s1", 0);
  auto container = nri_container("s1", "c1", "4-5");
  scene.call("CreateContainer", about(pod, container));
  const auto& report = scene.diary.reports["c1"];
  CHECK(report.spec.quota == 200000);
  CHECK(report.spec.period == 100000);
  CHECK(report.spec.name == "app");
  CHECK(report.before == policy::ledger::ContainerSpec{});
  auto request = update(pod, container, "4-6");
  request.mutable_linux_resources()->mutable_cpu()->mutable_quota()->set_value(300000);
  request.mutable_linux_resources()->mutable_cpu()->set_mems("1");
  scene.call("UpdateContainer", request);
  CHECK(report.spec.quota == 300000);
  CHECK_FALSE(report.spec.period);
  CHECK(report.spec.mems == policy::NodeSet{1});
  CHECK(report.before.quota == 200000);
  CHECK(report.before.period == 100000);
  // 0 is how the CRI leaves a value as it is.
  request.mutable_linux_resources()->mutable_cpu()->mutable_quota()->set_value(0);
  scene.call("UpdateContainer", request);
  CHECK_FALSE(report.spec.quota);
  // A whole spec without a quota has none.
  container.mutable_linux()->mutable_resources()->mutable_cpu()->clear_quota();
  scene.call("PostUpdateContainer", about(pod, container));
  CHECK(report.spec.quota == 0);
}

TEST_CASE("a malformed list changes nothing and is logged") {
  NriScene scene;
  scene.start();
  scene.handshake();
  const auto pod = nri_pod("s1", 0);
  scene.call("PostUpdateContainer", about(pod, nri_container("s1", "c1", "5-4")));
  CHECK_FALSE(scene.diary.reports["c1"].spec.cpus);
  CHECK(scene.log_lines.find("5-4") != std::string::npos);
}

TEST_CASE("a pod whose pid comes late becomes a VM once its process is known to be one") {
  NriScene scene;
  scene.vmm_pids = {100};
  scene.start();
  scene.handshake();
  scene.call("RunPodSandbox", about(nri_pod("s1", 0)));
  CHECK(scene.diary.drain() == Lines{"before(pod s1)", "after s1(pod s1)"});
  auto container = nri_container("s1", "c1", "4");
  scene.call("CreateContainer", about(nri_pod("s1", 0), container));
  CHECK(scene.diary.drain() == Lines{"before(container s1/c1 4)"});
  container.set_pid(100);
  scene.call("PostStartContainer", about(nri_pod("s1", 0), container));
  CHECK(scene.diary.drain() == Lines{"after s1(pod s1 vm 100; container s1/c1 4)"});
}

TEST_CASE("a pod's own process is distinguished from a tenant's program") {
  NriScene scene;
  scene.start();
  scene.handshake();
  auto container = nri_container("s2", "c1", "4");
  container.set_pid(200);
  auto runc = nri_pod("s3", 300);
  runc.set_runtime_handler("runc");
  scene.call("RunPodSandbox", about(nri_pod("s1", 100)));
  scene.call("PostStartContainer", about(nri_pod("s2", 0), container));
  scene.call("RunPodSandbox", about(runc));
  using enum nri::Origin;
  CHECK(scene.answer_to == std::vector{kPod, kContainer, kContainer});
}

TEST_CASE("a process that had not started when its pod was reported is examined again") {
  NriScene scene;
  scene.start();
  scene.handshake();
  scene.call("RunPodSandbox", about(nri_pod("s1", 100)));
  scene.diary.drain();
  scene.vmm_pids = {100};
  scene.call("CreateContainer", about(nri_pod("s1", 100), nri_container("s1", "c1", "4")));
  CHECK(scene.diary.drain() == Lines{"before(pod s1 vm 100; container s1/c1 4)"});
  const int before = scene.vmm_questions;
  scene.call("StartContainer", about(nri_pod("s1", 100), nri_container("s1", "c1", "4")));
  CHECK(scene.vmm_questions == before);
}

TEST_CASE("unknown methods are answered as unimplemented") {
  NriScene scene;
  scene.start();
  scene.handshake();
  const auto unknown = scene.call("ValidateContainerAdjustment", wire::Empty());
  CHECK(unknown.code == rpc::Code::kUnimplemented);
  CHECK(scene.call("Shutdown", wire::Empty()).code == rpc::Code::kOk);
  CHECK(scene.call("UpdatePodSandbox", about(nri_pod("s1", 0))).code == rpc::Code::kOk);
}

TEST_CASE("a pod whose process exits without an event is removed") {
  NriScene scene;
  scene.vmm_pids = {100};
  scene.start();
  scene.handshake();
  scene.call("RunPodSandbox", about(nri_pod("vm", 100)));
  scene.call("RunPodSandbox", about(nri_pod("runc", 200)));
  scene.call("RunPodSandbox", about(nri_pod("nameless", 0)));
  scene.diary.drain();
  scene.plugin().poll();
  CHECK(scene.diary.drain().empty());
  scene.ended_pids = {100, 200};
  scene.plugin().poll();
  CHECK(scene.diary.drain() == Lines{"after (gone runc)"});
  scene.plugin().poll();
  CHECK(scene.diary.drain().empty());
}

TEST_CASE("a process that reuses a pid is another one, and may become a VMM") {
  NriScene scene;
  scene.start();
  scene.handshake();
  scene.call("RunPodSandbox", about(nri_pod("ended", 200)));
  scene.call("RunPodSandbox", about(nri_pod("late", 300)));
  scene.diary.drain();
  scene.reused_pids = {200};
  scene.vmm_pids = {300};
  scene.plugin().poll();
  CHECK(scene.diary.drain() == Lines{"after (gone ended; pod late vm 300)"});
  scene.plugin().poll();
  CHECK(scene.diary.drain().empty());
}

TEST_CASE("after a restart of the runtime every pod is reported again") {
  NriScene scene;
  scene.start();
  scene.handshake();
  scene.call("RunPodSandbox", about(nri_pod("s1", 0)));
  scene.hang_up();
  scene.accept();
  scene.configure("containerd", "v1.7.24");
  scene.diary.drain();
  wire::SynchronizeRequest all;
  *all.add_pods() = nri_pod("s1", 0);
  scene.call("Synchronize", all);
  CHECK(scene.diary.drain() == Lines{"connected containerd v1.7.24", "all(pod s1)"});
}

TEST_CASE("large requests arrive in parts, responses go in frames that Go accepts") {
  NriScene scene;
  scene.start();
  NriPeer& peer = scene.handshake();
  wire::ConfigureRequest large;
  large.set_config(std::string(3 << 20, 'x'));
  CHECK(scene.call("Configure", large).code == rpc::Code::kOk);
  CHECK(scene.call(std::string(20000, 'm'), wire::Empty()).code == rpc::Code::kUnimplemented);
  CHECK(peer.longest_frame == nri::kMaxSent);
}

TEST_CASE(
    "names of pods and containers are shown, not obeyed; ids that are none are not followed") {
  NriScene scene;
  scene.start();
  scene.handshake();
  wire::PodSandbox pod = nri_pod("s1", 0);
  auto container = nri_container("s1", "c1", "4-5\n");
  container.set_name("a\x1b[2J\xe2\x80\xae");
  scene.call("CreateContainer", about(pod, container));
  CHECK(scene.diary.reports["c1"].spec.name == "a\\x1b[2J\\u{202e}");
  CHECK_FALSE(scene.diary.reports["c1"].spec.cpus);
  scene.diary.drain();
  scene.call("RunPodSandbox", about(nri_pod("s\r\n1", 0)));
  CHECK(scene.diary.drain() == Lines{"before()", "after s\r\n1()"});
  CHECK(scene.log_lines.find("s\\x0d\\x0a1") != std::string::npos);
}
