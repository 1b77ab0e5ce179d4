// SPDX-License-Identifier: Apache-2.0
// Sandboxes whose mask alone is known, as Kata's runtime-rs leaves them where nothing else reports.
#include <string>
#include <vector>

#include "policy/ledger/ledger.hpp"
#include "tests/catch.hpp"

using namespace ka::policy;
using namespace ka::policy::ledger;

namespace {

struct MaskScene {
  MaskScene() { pod("uid-a"); }

  void pod(const std::string& uid) {
    apply({Source::kCgroup, PodSeen{.id = "a", .pod_uid = uid, .pod_name = "ns/a"}});
  }
  Change mask(CpuSet cpus) {
    return apply({Source::kCgroup,
                  ContainerSeen{.sandbox = "a", .id = "sandbox-mask", .spec = {.cpus = cpus}}});
  }
  Change kubelet(std::vector<Claim> claims, bool outdated = false) {
    return apply({Source::kKubelet, KubeletSeen{CpuSet{0, 1}, std::move(claims), outdated}});
  }
  Change apply(const Event& event) { return ledger.apply(event); }

  /// "sandbox-mask 4-5 own, sandbox-rest 0-1".
  std::string parts() const {
    std::string text;
    for (const ContainerFacts& facts : to_sandbox_facts(*ledger.find("a")).containers) {
      text += (text.empty() ? "" : ", ") + facts.id + ' ' + format_list(facts.cpus) +
              (facts.exclusive ? " own" : "");
    }
    return text;
  }

  Ledger ledger;
};

}  // namespace

TEST_CASE("a mask is divided into what its pod owns by kubelet's state, and the rest") {
  MaskScene scene;
  scene.mask({0, 1, 4, 5, 6});
  CHECK(scene.parts() == "sandbox-mask 0-1,4-6");
  const Change change = scene.kubelet({{"uid-a", "app", {4, 5}}, {"uid-a", "db", {6}}});
  CHECK(change.exclusive_map);
  CHECK(change.ownership_changed.contains("a"));
  CHECK(scene.parts() == "sandbox-mask 4-6 own, sandbox-rest 0-1");
  CHECK(scene.ledger.exclusive_to_others("a").empty());
  CHECK(scene.ledger.exclusive_to_others("b") == CpuSet{4, 5, 6});
  CHECK(scene.ledger.unreported_claims().empty());

  CHECK_FALSE(scene.mask({0, 1, 4, 5, 6}).any);
  CHECK(scene.mask({4, 5, 6}).any);
  CHECK(scene.parts() == "sandbox-mask 4-6 own");
  CHECK(scene.mask({1, 4, 5, 6}).any);
  CHECK(scene.parts() == "sandbox-mask 4-6 own, sandbox-rest 1");
  CHECK(scene.kubelet({{"uid-a", "app", {4, 5}}}).exclusive_map);
  CHECK(scene.parts() == "sandbox-mask 4-5 own, sandbox-rest 1,6");
  CHECK(scene.kubelet({{"uid-b", "app", {4, 5, 6}}}).exclusive_map);
  CHECK(scene.parts() == "sandbox-mask 1,4-6");
  CHECK(scene.ledger.exclusive_to_others("a") == CpuSet{4, 5, 6});
}

TEST_CASE("a mask is divided the same whichever report comes first") {
  MaskScene scene;
  scene.kubelet({{"uid-a", "app", {4, 5}}, {"uid-a", "db", {6}}});
  // Kata has not written all of what kubelet gave.
  scene.mask({0, 1, 4, 5});
  CHECK(scene.parts() == "sandbox-mask 4-5 own, sandbox-rest 0-1");
  MaskScene late;
  late.kubelet({{"uid-late", "app", {4, 5}}});
  late.mask({0, 1, 4, 5});
  CHECK(late.parts() == "sandbox-mask 0-1,4-5");
  late.pod("uid-late");
  CHECK(late.parts() == "sandbox-mask 4-5 own, sandbox-rest 0-1");
}

TEST_CASE("a mask is divided by an outdated state, and by PodResources where there is none") {
  MaskScene scene;
  scene.mask({0, 1, 4, 5});
  const ResourcesSeen resources{CpuSet::range(0, 7), {{"ns/a", "app", {5}}}};
  scene.apply({Source::kPodResources, resources});
  CHECK(scene.parts() == "sandbox-mask 5 own, sandbox-rest 0-1,4");
  CHECK_FALSE(scene.mask({0, 1, 4, 5}).any);
  scene.kubelet({{"uid-a", "app", {4}}}, true);
  CHECK(scene.parts() == "sandbox-mask 4 own, sandbox-rest 0-1,5");
  scene.apply({Source::kKubelet, KubeletSeen{}});
  CHECK(scene.parts() == "sandbox-mask 5 own, sandbox-rest 0-1,4");
  scene.apply({Source::kPodResources, ResourcesSeen{}});
  CHECK(scene.parts() == "sandbox-mask 0-1,4-5");
}

TEST_CASE("what a state file has of a mask holds until the mask is reported") {
  MaskScene before;
  before.kubelet({{"uid-a", "app", {4, 5}}});
  before.mask({0, 1, 4, 5});
  MaskScene scene;
  scene.ledger.restore(*before.ledger.find("a"));
  CHECK(scene.parts() == "sandbox-mask 4-5 own, sandbox-rest 0-1");
  CHECK(scene.ledger.exclusive_to_others("b") == CpuSet{4, 5});
  scene.kubelet({{"uid-a", "app", {4, 5}}});
  scene.mask({0, 1, 4, 5});
  CHECK_FALSE(scene.mask({0, 1, 4, 5}).any);
  CHECK(scene.parts() == "sandbox-mask 4-5 own, sandbox-rest 0-1");
}
