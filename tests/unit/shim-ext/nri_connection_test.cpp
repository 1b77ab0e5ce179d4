// SPDX-License-Identifier: Apache-2.0
// The connection to the runtime: how it comes about, why it ends, and that it comes back.
#include <algorithm>
#include <chrono>

#include "policy/facts/limits.hpp"
#include "shim-ext/watch/claim_entry.hpp"
#include "tests/unit/shim-ext/nri_scene.hpp"

using namespace ka;
using namespace ka::tests;
using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

TEST_CASE("a runtime that rejects the mask is asked again with the basic one") {
  NriScene scene;
  scene.start();
  scene.accept();
  CHECK(scene.configure("containerd", "v9.0.0") == 0x17ff);
  scene.hang_up();
  scene.accept();
  CHECK(scene.configure("containerd", "v9.0.0") == 0x7ff);
}

TEST_CASE("the plugin reconnects after the runtime restarted, was away or rejected it") {
  NriScene scene;
  scene.start();
  scene.handshake();
  scene.hang_up();
  scene.run_until([&] { return !scene.diary.lines.empty(); });
  CHECK(scene.diary.drain() == Lines{"disconnected"});
  scene.listen();
  scene.registration = {rpc::Code::kInternal, "no", ""};
  const NriPeer& peer = scene.accept();
  scene.run_until([&] { return peer.closed; });
  scene.registration = {};
  scene.handshake();
  wire::PodRequest run;
  *run.mutable_pod() = nri_pod("s1", 0);
  scene.call("RunPodSandbox", run);
  CHECK(scene.diary.drain() == Lines{"before(pod s1)", "after s1(pod s1)"});
}

TEST_CASE("a peer that does not speak NRI is disconnected, and retried") {
  NriScene scene;
  scene.start();
  NriPeer& peer = scene.handshake();
  peer.send_raw("HTTP/1.1 400 Bad Request");
  scene.run_until([&] { return peer.closed; });
  CHECK(scene.diary.drain() == Lines{"disconnected"});
  scene.handshake();
}

TEST_CASE("a runtime that reports pods without end is disconnected, and may reconnect") {
  NriScene scene;
  scene.start();
  NriPeer& peer = scene.accept();
  scene.configure("containerd", "v2.3.1", "v0.12.0");
  wire::SynchronizeRequest part;
  part.set_more(true);
  constexpr std::size_t kAll = policy::kMaxSandboxes + policy::kMaxNodeContainers;
  constexpr std::size_t kEach = 1024;
  for (std::size_t i = 0; i < kEach; ++i) {
    *part.add_containers() = nri_container("s1", "c" + std::to_string(i), "1");
  }
  for (std::size_t sent = 0; sent < kAll; sent += kEach) scene.call("Synchronize", part);
  CHECK_FALSE(peer.closed);
  wire::SynchronizeRequest more;
  *more.add_containers() = nri_container("s1", "c", "1");
  peer.call("Synchronize", more);
  scene.run_until([&] { return peer.closed; });
  CHECK(scene.diary.drain() == Lines{"disconnected"});
  scene.handshake();
}

TEST_CASE("128 MiB of a runtime's reports are accepted, and not a byte more") {
  NriScene scene;
  scene.start();
  NriPeer& peer = scene.accept();
  scene.configure("containerd", "v2.3.1", "v0.12.0");
  constexpr std::size_t kPart = std::size_t{2} << 20;
  wire::SynchronizeRequest part;
  part.set_more(true);
  wire::PodSandbox& pod = *part.add_pods();
  pod = nri_pod("s1", 0);
  std::string& text = (*pod.mutable_annotations())["text"];
  text.assign(kPart / 2, 'x');  // its length takes as many bytes as that of twice as much
  text.append(kPart - part.ByteSizeLong(), 'x');
  REQUIRE(part.ByteSizeLong() == kPart);
  for (int i = 0; i < 64; ++i) scene.call("Synchronize", part);
  CHECK_FALSE(peer.closed);
  wire::SynchronizeRequest more;
  more.set_more(true);
  peer.call("Synchronize", more);
  scene.run_until([&] { return peer.closed; });
  CHECK(scene.diary.drain() == Lines{"disconnected"});
  scene.handshake();
}

TEST_CASE("claims that a runtime reports count as containers do") {
  NriScene scene;
  scene.start();
  NriPeer& peer = scene.accept();
  scene.configure("containerd", "v2.3.1", "v0.12.0");
  std::size_t left = policy::kMaxSandboxes + policy::kMaxNodeContainers - 1;
  wire::SynchronizeRequest all;
  while (left > 0) {
    wire::Container& container = *all.add_containers();
    container = nri_container("s1", "c" + std::to_string(left), "1");
    const std::size_t claims = std::min(left - 1, watch::kMaxClaimEntries);
    for (std::size_t i = 0; i < claims; ++i) {
      container.add_env("DRA_CPUSET_u" + std::to_string(i) + "=2-3");
    }
    left -= 1 + claims;
  }
  all.set_more(true);
  scene.call("Synchronize", all);
  wire::SynchronizeRequest last;
  *last.add_containers() = nri_container("s1", "last", "1");
  last.set_more(true);
  SECTION("one container more is as many as are kept") {
    scene.call("Synchronize", last);
    CHECK_FALSE(peer.closed);
  }
  SECTION("with a claim it is too much") {
    last.mutable_containers(0)->add_env("DRA_CPUSET_one=2-3");
    peer.call("Synchronize", last);
    scene.run_until([&] { return peer.closed; });
    CHECK(scene.diary.drain() == Lines{"disconnected"});
  }
}

TEST_CASE("nothing is kept of what a runtime reports under no valid id") {
  NriScene scene;
  scene.start();
  scene.accept();
  scene.configure("containerd", "v2.3.1", "v0.12.0");
  const std::string endless(std::size_t{1} << 19, 'x');
  for (const auto& [pod, container] :
       {std::pair(endless, std::string("c1")), std::pair(std::string("s1"), endless)}) {
    wire::SynchronizeRequest part;
    part.set_more(true);
    *part.add_pods() = nri_pod(pod, 0);
    *part.add_containers() = nri_container(pod, container, "1");
    scene.call("Synchronize", part);
  }
  scene.call("Synchronize", wire::SynchronizeRequest());
  CHECK(scene.diary.drain() == Lines{"connected containerd v2.3.1", "all(pod s1)"});
}

TEST_CASE("a runtime that was answered too late is connected to again") {
  NriScene scene;
  scene.start();
  NriPeer& peer = scene.accept();
  scene.configure("containerd", "v1.7.24");
  peer.timeout = 2s;
  wire::SynchronizeRequest all;
  *all.add_pods() = nri_pod("s1", 0);
  const auto is_left = [&] {
    peer.call("Synchronize", all);
    scene.run_until([&] { return peer.closed; });
    CHECK(scene.diary.drain() == Lines{"all(pod s1)", "disconnected"});
    CHECK_FALSE(scene.plugin().synchronized());
  };
  SECTION("by the time that the answer took") {
    scene.diary.while_synchronizing = [&] { scene.clock().advance(2s); };
    is_left();
  }
  SECTION("by the time that the request waited to be read") {
    scene.clock().advance(2s);
    is_left();
  }
  scene.diary.while_synchronizing = {};
  scene.handshake();
  CHECK(scene.plugin().synchronized());
}

TEST_CASE("a runtime that takes its time before it asks is answered in time") {
  NriScene scene;
  scene.start();
  NriPeer& peer = scene.accept();
  scene.configure("containerd", "v1.7.24");
  for (int i = 0; i < 50; ++i) {
    scene.clock().advance(100ms);
    scene.configure("containerd", "v1.7.24");
  }
  peer.timeout = 2s;
  scene.diary.while_synchronizing = [&] { scene.clock().advance(1700ms); };
  scene.call("Synchronize", wire::SynchronizeRequest());
  CHECK(scene.plugin().synchronized());
  CHECK(scene.diary.drain() == Lines{"connected containerd v1.7.24", "all()"});
}

TEST_CASE("containers are changed between the runtime's calls, where it can be asked") {
  NriScene scene;
  scene.start();
  NriPeer& peer = scene.accept();
  scene.configure("containerd", "v2.4.0", "v0.12.1");
  scene.call("Synchronize", wire::SynchronizeRequest());
  CHECK(scene.diary.drain() == Lines{"connected containerd v2.4.0, accepts updates", "all()"});
  bool done = false;
  scene.plugin().update({{"c1", {2, 3}, {1}}, {"c2", {0}, {}}}, [&] { done = true; });
  scene.run_until([&] { return done; });
  REQUIRE(peer.requests.size() == 2);
  CHECK(peer.requests[1].service == "nri.pkg.api.v1alpha1.Runtime");
  CHECK(peer.requests[1].method == "UpdateContainers");
  wire::UpdateContainersRequest request;
  REQUIRE(request.ParseFromString(peer.requests[1].payload));
  REQUIRE(request.update_size() == 2);
  CHECK(request.update(0).container_id() == "c1");
  CHECK(request.update(0).linux().resources().cpu().cpus() == "2-3");
  CHECK(request.update(0).linux().resources().cpu().mems() == "1");
  CHECK(request.update(0).ignore_failure());
}
