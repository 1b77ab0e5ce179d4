// SPDX-License-Identifier: Apache-2.0
// Pods of which cannot be seen whether they have a VM, when the runtime reports them.
#include "tests/unit/shim-ext/nri_scene.hpp"

using namespace ka;
using namespace ka::tests;
using Lines = std::vector<std::string>;

namespace {

wire::ContainerRequest about(const wire::PodSandbox& pod, const wire::Container& container = {}) {
  wire::ContainerRequest request;
  *request.mutable_pod() = pod;
  *request.mutable_container() = container;
  return request;
}

/// A runtime that reports a pod whose process cannot be examined.
struct UnseenScene : NriScene {
  explicit UnseenScene(std::uint32_t pid) {
    vmm_pids = {100};
    unread_pids = {100};
    start();
    handshake();
    call("RunPodSandbox", about(nri_pod("s1", pid)));
    if (pid == 0) {
      auto container = nri_container("s1", "c1", "4");
      container.set_pid(100);
      call("PostStartContainer", about(nri_pod("s1", 0), container));
    }
  }

  Lines polled() {
    plugin().poll();
    return diary.drain();
  }
};

}  // namespace

TEST_CASE("a pod that cannot be seen is no pod without a VM: it is probed until it is seen") {
  for (const std::uint32_t pid : {100U, 0U}) {  // its own process, or that of its container
    CAPTURE(pid);
    UnseenScene scene(pid);
    CHECK(scene.diary.drain().back() == "unseen s1");
    CHECK(scene.polled().empty());
    CHECK(scene.log_lines.find("cannot see whether the pod has a VM") != std::string::npos);
    scene.unread_pids.clear();
    CHECK(scene.polled() == Lines{"after (pod s1 vm 100)", "unseen"});
    CHECK(scene.polled().empty());
  }
}

TEST_CASE("an error that passes at once hides no VM") {
  NriScene scene;
  scene.vmm_pids = {100};
  scene.fail_once = true;
  scene.start();
  scene.handshake();
  scene.call("RunPodSandbox", about(nri_pod("s1", 100)));
  CHECK(scene.diary.drain() == Lines{"before(pod s1 vm 100)", "after s1(pod s1 vm 100)"});
}

TEST_CASE("a pod that could not be seen ends with its process, and is not another's") {
  SECTION("which has ended, or whose number another process has") {
    const bool is_another = GENERATE(false, true);
    UnseenScene scene(100);
    scene.diary.drain();
    scene.unread_pids.clear();
    (is_another ? scene.late_pids : scene.ended_pids) = {100};
    CHECK(scene.polled() == Lines{"after (gone s1)", "unseen"});
  }
  SECTION("which is of a container: the pod stays") {
    UnseenScene scene(0);
    scene.diary.drain();
    scene.unread_pids.clear();
    scene.ended_pids = {100};
    CHECK(scene.polled() == Lines{"unseen"});
  }
  SECTION("and with its removal") {
    UnseenScene scene(100);
    scene.diary.drain();
    scene.call("RemovePodSandbox", about(nri_pod("s1", 100)));
    CHECK(scene.diary.drain().back() == "unseen");
  }
}
