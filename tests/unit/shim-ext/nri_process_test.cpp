// SPDX-License-Identifier: Apache-2.0
// The process that the runtime names for a pod: a VMM, a tenant's program, one that cannot be seen.
#include "tests/unit/shim-ext/nri_scene.hpp"

using namespace ka;
using namespace ka::tests;
using Lines = std::vector<std::string>;

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

TEST_CASE("a process that cannot be examined is no proof of a pod without a VM") {
  NriScene scene;
  scene.vmm_pids = {100};
  scene.hidden_pids = {100, 200, 300};
  scene.start();
  scene.handshake();
  scene.call("RunPodSandbox", about(nri_pod("vm", 100)));
  scene.call("RunPodSandbox", about(nri_pod("runc", 200)));
  scene.call("RunPodSandbox", about(nri_pod("ended", 300)));
  scene.diary.drain();
  scene.plugin().poll();
  CHECK(scene.diary.drain().empty());
  CHECK(scene.plugin().unread() == "pod ended: it cannot be read");
  scene.hidden_pids.clear();
  scene.ended_pids = {300};
  scene.plugin().poll();
  CHECK(scene.diary.drain() == Lines{"after (pod vm vm 100)"});
  CHECK(scene.plugin().unread().empty());
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
