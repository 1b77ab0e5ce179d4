// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/pod_resources/answer.hpp"

#include <string>

#include "policy/facts/limits.hpp"
#include "shim-ext/proto/pod_resources.pb.h"
#include "tests/catch.hpp"
#include "tests/peers/pod_resources/scripted_kubelet.hpp"

using namespace ka;
using policy::CpuSet;
using policy::ledger::Assignment;

namespace {

proto::podresources::PodResources pod(const std::string& name, const std::string& container) {
  proto::podresources::PodResources made;
  made.set_namespace_("ns");
  made.set_name(name);
  made.add_containers()->set_name(container);
  return made;
}

}  // namespace

TEST_CASE("List names containers with their CPUs and devices") {
  const auto list = pod_resources::parse_list(tests::list_message({4, 5}));
  REQUIRE(list);
  CHECK(*list == std::vector<Assignment>{
                     {"ns/a", "app", {4, 5}, {{"nvidia.com/gpu", 2, policy::NodeSet{1}}}}});
  CHECK(pod_resources::parse_list("")->empty());
}

TEST_CASE("claims that dra-driver-cpu prepared are named by their CDI devices") {
  proto::podresources::ListResponse response;
  *response.add_pod_resources() = pod("a", "app");
  auto& container = *response.mutable_pod_resources(0)->mutable_containers(0);
  for (const char* device : {"dra.k8s.io/cpu=claim-u2", "nvidia.com/gpu=claim-u3",
                             "dra.k8s.io/cpu=claim-u1", "dra.k8s.io/cpu=claim-u1"}) {
    container.add_dynamic_resources()->add_claim_resources()->add_cdi_devices()->set_name(device);
  }
  const auto list = pod_resources::parse_list(response.SerializeAsString());
  REQUIRE(list);
  CHECK(*list == std::vector<Assignment>{{"ns/a", "app", {}, {}, {"u1", "u2"}}});
}

TEST_CASE("CPUs of a pod as a whole are an assignment of their own") {
  proto::podresources::ListResponse response;
  *response.add_pod_resources() = pod("b", "side");
  response.mutable_pod_resources(0)->add_cpu_ids(6);
  const auto list = pod_resources::parse_list(response.SerializeAsString());
  REQUIRE(list);
  CHECK(*list == std::vector<Assignment>{{"ns/b", "", {6}}, {"ns/b", "side", {}}});
}

TEST_CASE("a name that two pods of the answer bear proves nothing") {
  proto::podresources::ListResponse response;
  for (int i = 0; i < 2; ++i) *response.add_pod_resources() = pod("twice", "app");
  *response.add_pod_resources() = pod("once", "app");
  const auto list = pod_resources::parse_list(response.SerializeAsString());
  REQUIRE(list);
  CHECK(*list == std::vector<Assignment>{{"ns/once", "app", {}}});
}

TEST_CASE("what cannot be is refused") {
  for (const std::int64_t cpu : {std::int64_t{-1}, std::int64_t{policy::kMaxIds}}) {
    CHECK_FALSE(pod_resources::parse_allocatable([&] {
      proto::podresources::AllocatableResponse response;
      response.add_cpu_ids(cpu);
      return response.SerializeAsString();
    }()));
  }
  CHECK_FALSE(pod_resources::parse_list("\x0a\x7f"));
  proto::podresources::ListResponse crowd;
  auto& big = *crowd.add_pod_resources();
  for (std::size_t i = 0; i <= policy::kMaxNodeContainers; ++i) big.add_containers();
  CHECK_FALSE(pod_resources::parse_list(crowd.SerializeAsString()));
}
