// SPDX-License-Identifier: Apache-2.0
// Calls that CRI-O made, replayed (tests/data/nri), and its names under the systemd driver.
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/shim-ext/nri_scene.hpp"

using namespace ka;
using namespace ka::tests;
using Lines = std::vector<std::string>;

namespace {

constexpr int kVmm = 22742;  ///< QEMU of the pod `vm`
const std::string kCartUid = "6f1c0a52-7c1b-4b1e-9a55-0f3a2d1c9e77";
const std::string kClaim = "9c0ba2bd-8b8a-4a1c-9f2e-1d4f7a6b5c3d";

/// By the first letters of the ids.
const std::vector<std::pair<std::string, std::string>> kNames{
    {"275d5df4", "vm"},       {"970287b7", "vm-main"}, {"aea37091", "cart"},
    {"b470c3f8", "cart-app"}, {"20586f43", "claims"},  {"d2653e93", "claims-own"}};

std::string with_names(std::string text) {
  constexpr std::size_t kLengthOfId = 64;
  for (const auto& [id, name] : kNames) {
    for (auto at = text.find(id); at != std::string::npos; at = text.find(id)) {
      text.replace(at, kLengthOfId, name);
    }
  }
  return text;
}

/// The calls to the plugin, in order.
std::vector<rpc::Request> recorded_calls() {
  std::ifstream in(std::string(KA_SOURCE_DIR) + "/tests/data/nri/cri-o-1.37.0.frames",
                   std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  ttrpc::Decoder decoder;
  nri::Demux demux;
  REQUIRE(demux.feed(bytes, [&](std::uint32_t lane, std::string_view payload) {
    if (lane == nri::kPluginLane) decoder.feed(payload);
  }));
  std::vector<rpc::Request> calls;
  while (const auto frame = decoder.next()) {
    calls.push_back(rpc::decode_request(frame->data).value());
  }
  CHECK(decoder.idle());
  return calls;
}

struct Replay {
  Replay() {
    scene.vmm_pids = {kVmm};
    scene.start();
    scene.accept();
  }

  /// Makes the next call, and those of its kind with nothing new to report. What was reported.
  Lines next(const std::string& method) {
    REQUIRE(at < calls.size());
    const rpc::Request& call = calls[at++];
    CHECK(call.service == "nri.pkg.api.v1alpha1.Plugin");
    CHECK(call.method == method);
    CHECK(scene.call(call.method, call.payload).code == rpc::Code::kOk);
    Lines lines = scene.diary.drain();
    for (std::string& line : lines) line = with_names(std::move(line));
    return lines;
  }

  void skip_to(const std::string& method) {
    while (at < calls.size() && calls[at].method != method) next(calls[at].method);
  }

  const policy::ledger::ContainerSeen& report(const std::string& container) const {
    for (const auto& [id, seen] : scene.diary.reports) {
      if (with_names(id) == container) return seen;
    }
    throw std::out_of_range(container);
  }

  template <typename Message>
  Message message() const {
    Message parsed;
    REQUIRE(parsed.ParseFromString(calls.at(at).payload));
    return parsed;
  }

  NriScene scene;
  std::vector<rpc::Request> calls = recorded_calls();
  std::size_t at = 0;
};

}  // namespace

TEST_CASE("CRI-O 1.37: what was there before, and the life of a Guaranteed runc container") {
  Replay replay;
  CHECK(replay.next("Configure").empty());
  CHECK(replay.next("Synchronize") ==
        Lines{"connected cri-o 1.37.0",
              "all(pod vm vm " + std::to_string(kVmm) + "; container vm/vm-main 0-1)"});
  CHECK(replay.scene.answer_to == std::vector{nri::Origin::kPod});
  CHECK(replay.next("RunPodSandbox") == Lines{"before(pod cart)", "after cart(pod cart)"});
  CHECK(replay.next("CreateContainer") == Lines{"before(container cart/cart-app 1)"});
  CHECK(replay.report("cart-app").spec.quota == 100000);
  CHECK(replay.report("cart-app").spec.period == 100000);
  CHECK(replay.report("cart-app").spec.name == "app");
  replay.skip_to("UpdateContainer");
  CHECK(replay.next("UpdateContainer") == Lines{"before(container cart/cart-app 0)"});
  CHECK(replay.report("cart-app").before.cpus == policy::CpuSet{1});
  CHECK_FALSE(replay.report("cart-app").spec.quota);
  CHECK(replay.next("PostUpdateContainer") == Lines{"after cart(container cart/cart-app 0)"});
  CHECK(replay.next("UpdateContainer") == Lines{"before(container cart/cart-app 0)"});
  CHECK(replay.report("cart-app").spec.quota == -1);
  CHECK(replay.report("cart-app").spec.shares == 1024);
  replay.skip_to("StopContainer");
  CHECK(replay.next("StopContainer") == Lines{"after cart(exited cart-app)"});
  CHECK(replay.next("RemoveContainer") == Lines{"after cart(gone cart-app)"});
  CHECK(replay.next("StopPodSandbox").empty());
  CHECK(replay.next("RemovePodSandbox") == Lines{"after cart(gone cart)"});
  CHECK(replay.at == replay.calls.size());
}

TEST_CASE("CRI-O 1.37: the process of a runc container is no pod's own") {
  Replay replay;
  replay.skip_to("PostStartContainer");
  replay.next("PostStartContainer");
  CHECK(replay.scene.answer_to.back() == nri::Origin::kContainer);
}

TEST_CASE("CRI-O 1.37: a claim's environment is there when the container is created") {
  Replay replay;
  replay.skip_to("StopContainer");
  const auto& report = replay.report("claims-own");
  CHECK(report.claims == std::vector<policy::ledger::PreparedClaim>{{kClaim, {1}}});
  CHECK(report.spec.cpus == policy::CpuSet{1});
  CHECK(replay.report("cart-app").claims->empty());
}

TEST_CASE("CRI-O 1.37: the cgroup driver's names for a pod and its container") {
  Replay replay;
  replay.skip_to("CreateContainer");
  const auto request = replay.message<wire::ContainerRequest>();
  replay.next("CreateContainer");
  const auto& described = replay.scene.diary.described;
  CHECK(described.candidate.pod_uid == kCartUid);
  CHECK(described.candidate.pod_name == "shop/cart");
  CHECK(with_names(described.pod_cgroup) == "/kubepods/pod" + kCartUid);
  CHECK_FALSE(described.outside_vm);  // no pause process: it may be anything
  CHECK(with_names(described.cgroup) == "/kubepods/pod" + kCartUid + "/crio-cart-app");

  // The systemd driver names slices (SandboxCgroupPath() of internal/config/cgmgr).
  const auto describe = [&](const std::string& slice) {
    auto systemd = request;
    systemd.mutable_pod()->mutable_linux()->set_cgroup_parent(slice);
    systemd.mutable_container()->mutable_linux()->set_cgroups_path(
        slice + ":crio:" + request.container().id());
    REQUIRE(replay.scene.call("CreateContainer", systemd).code == rpc::Code::kOk);
    return replay.scene.diary.described;
  };
  const auto exclusive = describe("kubepods-pod6f1c0a52.slice");
  CHECK(exclusive.pod_cgroup == "kubepods-pod6f1c0a52.slice");
  CHECK(with_names(exclusive.cgroup) == "kubepods-pod6f1c0a52.slice:crio:cart-app");
  for (const char* slice :
       {"kubepods-burstable-pod6f1c0a52.slice", "kubepods-besteffort-pod1.slice"}) {
    CHECK(describe(slice).pod_cgroup == slice);
  }
}
