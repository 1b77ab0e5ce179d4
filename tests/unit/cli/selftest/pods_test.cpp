// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/pods.hpp"

#include "affinity/cli/selftest/guest_affinity.hpp"
#include "affinity/cli/selftest/node.hpp"
#include "affinity/cli/selftest/record.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"
#include "tests/unit/cli/selftest/scene.hpp"

using namespace ka;
using namespace ka::cli::selftest;
using tests::cpus;

namespace {

const Choice kChoice{.runtime_class = "kata", .image = "i", .cpus = 2, .own = {}, .pool = {}};

NodeFacts good() {
  NodeFacts facts;
  facts.kubelet.emplace();
  facts.kubelet->manifests = "/etc/kubernetes/manifests";
  facts.kubelet->has_api_server = true;
  facts.assignments.pool = cpus("0-7");
  facts.handlers = {"kata-qemu", "kata-clh"};
  facts.images = {"docker.io/library/app:1", "registry.k8s.io/pause:3.10"};
  facts.has_kvm_debugfs = true;
  return facts;
}

/// What is refused; empty where nothing is.
std::string refusal(const NodeFacts& facts, const PodOptions& options = {}) {
  const auto choice = choose(facts, options);
  return choice ? "" : choice.error();
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("self-test, pods: without NRI the shim proxy's handlers are first") {
  const tests::TempDir root;
  const std::string runtimes = "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.";
  root.write("etc/containerd/config.toml",
             runtimes + "kata]\nruntime_type = \"io.containerd.kata.v2\"\n" + runtimes +
                 "kata-affinity]\nruntime_type = \"io.containerd.kata-affinity.v2\"\n");
  const auto handlers = [&] { return gather_facts(root.path(), {}, {}, {}).handlers; };
  CHECK(handlers() == std::vector<std::string>{"kata-affinity", "kata"});
  root.write("run/nri/nri.sock", "");
  CHECK(handlers() == std::vector<std::string>{"kata", "kata-affinity"});
}

TEST_CASE("self-test, pods: RuntimeClass, image and CPUs are chosen, or as requested") {
  const auto choice = choose(good(), {});
  REQUIRE(choice);
  CHECK(choice->runtime_class == "kata-qemu");
  CHECK(choice->image == "registry.k8s.io/pause:3.10");
  CHECK(choice->cpus == 2);
  const auto chosen = choose(good(), {"kata-clh", "", "app:1"});
  REQUIRE(chosen);
  CHECK(chosen->runtime_class == "kata-clh");
  CHECK(chosen->image == "app:1");
  CHECK(choose(good(), {"", "mine", ""})->runtime_class == "mine");
  NodeFacts configured = good();
  configured.sandbox_image = configured.images.front();
  CHECK(choose(configured, {})->image == "docker.io/library/app:1");
}

TEST_CASE("self-test, pods: one CPU stays in the shared pool") {
  NodeFacts facts = good();
  facts.assignments.pool = cpus("4-5");
  CHECK(choose(facts, {})->cpus == 1);
  facts.kubelet->reserved = cpus("4-5");
  CHECK(contains(refusal(facts), "the shared pool is 4-5"));
  facts.kubelet->reserved = {};
  facts.assignments.pool = cpus("4");
  CHECK(contains(refusal(facts), "one CPU stays in it"));
}

TEST_CASE("self-test, pods: threads are not released if other pods own CPUs") {
  NodeFacts facts = good();
  facts.assignments.claims = {};
  CHECK(choose(facts, {.demo = true}));
  facts.assignments.claims = {{"uid", "app", cpus("2-3")}};
  CHECK(choose(facts, {}));
  CHECK(contains(refusal(facts, {.demo = true}), "CPUs 2-3 belong to other pods"));
}

TEST_CASE("self-test, pods: missing prerequisites are named") {
  NodeFacts facts = good();
  facts.kubelet->manifests.clear();
  CHECK(contains(refusal(facts), "staticPodPath"));
  facts = good();
  facts.has_kvm_debugfs = false;
  CHECK(contains(refusal(facts), "mount -t debugfs"));
  facts = good();
  facts.images.clear();
  CHECK(contains(refusal(facts), "no pause image"));
  facts = good();
  CHECK(contains(refusal(facts, {"kata-no", "", ""}), "it has: kata-qemu, kata-clh"));
  facts.handlers.clear();
  CHECK(contains(refusal(facts), "--runtime-class"));
}

TEST_CASE("self-test, pods: without an API server only containerd's untrusted runtime works") {
  NodeFacts facts = good();
  facts.kubelet->has_api_server = false;
  CHECK(contains(refusal(facts), "resolves no RuntimeClass"));
  facts.handlers.emplace_back("untrusted");
  const auto choice = choose(facts, {});
  REQUIRE(choice);
  CHECK(contains(manifest_of(vm_pod(*choice, "u")), "untrusted-workload\":\"true"));
  CHECK(contains(refusal(facts, {"kata-qemu", "", ""}), "omit --handler"));
}

TEST_CASE("self-test, pods: without kubelet CPUs that no container is bound to are chosen") {
  NodeFacts facts = good();
  facts.kubelet.reset();
  facts.in_use = cpus("6-7");
  const auto choice = choose(facts, {.handler = "kata-clh"});
  REQUIRE(choice);
  CHECK(choice->runtime_class == "kata-clh");
  CHECK(choice->own == cpus("4-5"));
  CHECK(choice->pool == cpus("0-3,6-7"));
  CHECK(choice->cpus == 2);
  facts.assignments.pool = cpus("3-4");
  CHECK(choose(facts, {})->own == cpus("4"));
  facts.assignments.pool = cpus("4");
  CHECK(contains(refusal(facts), "one CPU stays in the pool"));
  facts.assignments.pool = cpus("6-7");
  CHECK(contains(refusal(facts), "containers are bound to 6-7"));
}

TEST_CASE("self-test, pods: without kubelet no RuntimeClass is resolved, and nothing is pulled") {
  NodeFacts facts = good();
  facts.kubelet.reset();
  CHECK(contains(refusal(facts, {.runtime_class = "kata"}), "no kubelet runs"));
  CHECK(contains(refusal(facts, {.handler = "mine"}), "it has: kata-qemu, kata-clh"));
  facts.sandbox_image = "registry.k8s.io/pause:3.8";
  CHECK(contains(refusal(facts), "registry.k8s.io/pause:3.8 is not on this node"));
  facts.handlers.clear();
  facts.sandbox_image.clear();
  CHECK(contains(refusal(facts), "no Kata handler"));
}

TEST_CASE("self-test, pods: one is Guaranteed in a VM, the other burstable") {
  const auto vm = base::parse_json(manifest_of(vm_pod(kChoice, "u")), "vm");
  REQUIRE(vm);
  CHECK(vm->at_pointer("/spec/containers/0/resources/requests") ==
        vm->at_pointer("/spec/containers/0/resources/limits"));
  CHECK(vm->at_pointer("/spec/containers/0/resources/limits/cpu") == "2");
  CHECK(vm->at_pointer("/spec/containers/0/imagePullPolicy") == "Never");
  CHECK(vm->at_pointer("/spec/runtimeClassName") == "kata");
  CHECK(vm->at_pointer("/metadata/uid") == "u");
  CHECK_FALSE(vm->at("spec").as_object().contains("volumes"));
  const auto shared = base::parse_json(manifest_of(shared_pod(kChoice, "u")), "shared");
  REQUIRE(shared);
  CHECK(shared->at_pointer("/spec/containers/0/resources/requests") !=
        shared->at_pointer("/spec/containers/0/resources/limits"));
  CHECK_FALSE(shared->at("spec").as_object().contains("runtimeClassName"));
}

TEST_CASE("self-test, pods: the agent's program is mounted into the one in a VM, read-only") {
  NodeFacts facts = good();
  facts.agent = "/usr/lib/kata-affinity/guest/kata-affinity-agent";
  const auto choice = choose(facts, {});
  REQUIRE(choice);
  const auto vm = base::parse_json(manifest_of(vm_pod(*choice, "u")), "vm");
  REQUIRE(vm);
  CHECK(vm->at_pointer("/spec/volumes/0/hostPath/path").as_string() == facts.agent);
  const auto& mount = vm->at_pointer("/spec/containers/0/volumeMounts/0");
  CHECK(mount.at("name") == vm->at_pointer("/spec/volumes/0/name"));
  CHECK(mount.at("mountPath").as_string() == guest_affinity_commands().front().front());
  CHECK(mount.at("readOnly") == true);
  CHECK_FALSE(contains(manifest_of(shared_pod(*choice, "u")), "volume"));
}

TEST_CASE(
    "self-test, record: a manifest is recorded before it is written, and removed by the next") {
  const tests::TempDir dir;
  const auto file = dir.path() / "state/record.json";
  const auto folder = dir.path() / "manifests";
  const Pod pod = vm_pod(kChoice, "u1");
  CHECK_FALSE(Record(file).place(folder, pod));  // there is no such folder
  REQUIRE(Record(file).placed().size() == 1);
  CHECK(Record(file).placed()[0] == Placed{folder / (pod.name + ".json"), "u1"});

  std::filesystem::create_directories(folder);
  CHECK(Record(file).place(folder, pod));
  CHECK(base::list_directory(folder) == std::vector<std::string>{pod.name + ".json"});
  dir.write("manifests/." + pod.name + ".json.new", "{\"half");
  Record next(file);
  CHECK(next.remove_manifests());
  CHECK(base::list_directory(folder)->empty());
  CHECK(next.clear());
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE(
    "self-test, record: what a lost record left is known by name and label, and nothing else") {
  const tests::TempDir dir;
  const Pod pod = vm_pod(kChoice, "u1");
  dir.write(pod.name + ".json", manifest_of(pod));
  dir.write("kata-affinity-selftest-mine.json", R"({"metadata":{"name":"mine","uid":"u2"}})");
  dir.write("other.json", manifest_of(pod));
  Record record(dir.path() / "none");
  record.add_leftovers(dir.path());
  CHECK(record.placed() == std::vector<Placed>{{dir.path() / (pod.name + ".json"), "u1"}});
}
