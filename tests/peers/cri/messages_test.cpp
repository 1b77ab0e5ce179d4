// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/cri/messages.hpp"

#include <string>

#include "policy/facts/limits.hpp"
#include "shim-ext/proto/cri.pb.h"
#include "tests/catch.hpp"
#include "tests/peers/cri/scripted_runtime.hpp"

using namespace ka;
using namespace ka::cri;

namespace {

const PodConfig kPod{.name = "vm",
                     .uid = "u",
                     .name_space = "ns",
                     .cgroup_parent = "system.slice",
                     .labels = {{"ours", "true"}},
                     .resources = {.cpus = {}, .quota = 200000, .period = 100000}};
const ContainerConfig kContainer{
    .name = "app",
    .image = "pause",
    .labels = {{"ours", "true"}},
    .resources = {.cpus = {2, 3}, .quota = 200000, .period = 100000, .shares = 2048, .memory = 512},
    .mounts = {{.on_host = "/h", .in_container = "/c"}}};

/// Field numbers and wire types as api.proto has them, by hand.
bool contains(const std::string& bytes, std::string_view part) {
  return bytes.find(part) != std::string::npos;
}

proto::cri::ListContainersResponse one_container(const std::string& id, const std::string& pod,
                                                 int state) {
  proto::cri::ListContainersResponse response;
  auto& one = *response.add_containers();
  one.set_id(id);
  one.set_pod_sandbox_id(pod);
  one.mutable_metadata()->set_name("app");
  one.set_state(state);
  return response;
}

}  // namespace

TEST_CASE("a container is created with its CPUs, in the fields of api.proto") {
  using namespace std::string_view_literals;
  const std::string bytes = encode_create_container("p1", kContainer, kPod);
  CHECK(bytes.starts_with("\x0a\x02p1"));                            // 1: pod_sandbox_id
  CHECK(contains(bytes, "\x12\x07\x0a\x05pause"sv));                 // 2: image, of 1: image
  CHECK(contains(bytes, "\x3a\x0a\x0a\x02/c\x12\x02/h\x18\x01"sv));  // 7: mounts
  CHECK(contains(bytes, "\x4a\x0c\x0a\x04ours\x12\x04true"sv));      // 9: labels
  CHECK(contains(bytes,
                 "\x32\x03"
                 "2-3"sv));                      // 6: cpuset_cpus
  CHECK(contains(bytes, "\x10\xc0\x9a\x0c"sv));  // 2: cpu_quota
  CHECK(contains(bytes, "\x18\x80\x10"sv));      // 3: cpu_shares
  CHECK(contains(bytes, "\x20\x80\x04"sv));      // 4: memory_limit_in_bytes
}

TEST_CASE("a pod is run in the node's network, under a handler, with our label") {
  using namespace std::string_view_literals;
  const std::string bytes = encode_run_pod(kPod, "kata");
  CHECK(contains(bytes, "\x32\x0c\x0a\x04ours\x12\x04true"sv));  // 6: labels
  CHECK(contains(bytes, "\x0a\x0csystem.slice\x12\x04\x0a\x02\x08\x02"sv));
  CHECK(bytes.ends_with("\x12\x04kata"));  // 2: runtime_handler
  CHECK(encode_list_pods({{"a", "b"}}) ==
        "\x0a\x08\x1a\x06\x0a\x01"
        "a\x12\x01"
        "b");
}

TEST_CASE("what is listed has ids, and what has ended is known by its state") {
  CHECK(*parse_containers(one_container("c", "p", 1).SerializeAsString()) ==
        std::vector<Container>{{"c", "p", "app", true}});
  CHECK_FALSE(parse_containers(one_container("c", "p", 2).SerializeAsString())->front().is_live);
  CHECK_FALSE(parse_containers(one_container("", "p", 1).SerializeAsString()));
  CHECK_FALSE(parse_containers(one_container("c\n", "p", 1).SerializeAsString()));
  CHECK_FALSE(parse_containers("\x0a\x7f"));
  CHECK(parse_containers("")->empty());

  proto::cri::ListPodSandboxResponse pods;
  pods.add_items()->set_id("p");
  pods.mutable_items(0)->mutable_metadata()->set_uid("u");
  CHECK(*parse_pods(pods.SerializeAsString()) == std::vector<Pod>{{"p", "u"}});
  for (std::size_t i = 0; i < policy::kMaxNodeContainers; ++i) pods.add_items()->set_id("p");
  CHECK_FALSE(parse_pods(pods.SerializeAsString()));
}

TEST_CASE("the runtime's id of what it made is required") {
  CHECK(*parse_id("\x0a\x02id") == "id");
  CHECK_FALSE(parse_id(""));
  CHECK_FALSE(parse_id("\x0a\x05id"));
}

TEST_CASE("a program in a container is given its words, and what it printed comes back") {
  using namespace std::string_view_literals;
  CHECK(encode_exec("c", {"cat", "/f"}, std::chrono::seconds(7)) ==
        "\x0a\x01"
        "c\x12\x03"
        "cat\x12\x02/f\x18\x07");
  CHECK(*parse_ended("\x0a\x03out\x12\x01"
                     "e\x18\x02") == Ended{2, "out", "e"});
  CHECK(*parse_ended("") == Ended{});
  CHECK_FALSE(parse_ended("\x0a\x09out"));
}

TEST_CASE("a container's CPUs are those of its OCI spec") {
  const auto found = parse_container_resources(
      tests::container_status(R"({"cpus":"2-3","quota":200000,"period":100000,"shares":2048})"));
  REQUIRE(found);
  CHECK(*found == Resources{.cpus = {2, 3}, .quota = 200000, .period = 100000, .shares = 2048});
  CHECK(parse_container_resources(tests::container_status("{}"))->cpus.empty());
  CHECK(parse_container_resources(tests::container_status("null"))->cpus.empty());
  CHECK_FALSE(parse_container_resources(tests::container_status(R"({"cpus":"3-2"})")));
  CHECK_FALSE(parse_container_resources(tests::container_status(R"({"cpus":[3]})")));
  CHECK_FALSE(parse_container_resources(tests::container_status(R"({"quota":"3"})")));
  CHECK_FALSE(parse_container_resources(tests::container_status("{")));
  CHECK_FALSE(parse_container_resources(""));
}

TEST_CASE("containerd's settings are those of its verbose status") {
  CHECK(*parse_settings(tests::runtime_status(true)) ==
        Settings{true, "registry.k8s.io/pause:3.8"});
  CHECK_FALSE(parse_settings(tests::runtime_status(false))->systemd_cgroup);
  CHECK_FALSE(parse_settings(""));
}
