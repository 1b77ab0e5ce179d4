// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/reader.hpp"

#include "affinity/cli/selftest/kubelet.hpp"
#include "tests/catch.hpp"
#include "tests/unit/cli/selftest/scene.hpp"

using namespace ka;
using namespace ka::cli::selftest;
using tests::cpus;
using tests::SelftestNode;

namespace {

std::string part_of(const std::vector<ThreadSeen>& threads, int tid) {
  for (const ThreadSeen& one : threads) {
    if (one.tid == tid) return one.part + ' ' + policy::format_list(one.cpus);
  }
  return "not seen";
}

}  // namespace

TEST_CASE("self-test, reader: the threads of a VM, and those of other pods") {
  SelftestNode node;
  node.start_vm("uid-vm", {"0-1,4-7", "0-1,4-7", "2", "3"});
  node.start_runc("uid-runc", "0-1,4-7");
  Reader reader = node.reader();
  const Reading reading = reader.read("uid-vm");
  CHECK(reading.sandbox == std::string(64, 'a'));
  CHECK(reading.containers == std::map<std::string, std::string>{{"app", std::string(64, 'b')}});
  CHECK(part_of(reading.own, 90) == "shim 0-1,4-7");
  CHECK(part_of(reading.own, 100) == "VMM 0-1,4-7");
  CHECK(part_of(reading.own, 102) == "vCPU 2");
  const auto vcpu = std::ranges::find(reading.own, 102, &ThreadSeen::tid);
  CHECK(vcpu->apic_id == 1);
  CHECK(part_of(reading.others, 201) == "container app 0-1,4-7");
  CHECK(part_of(reading.others, 200) == "not seen");  // kubelet assigns a pause process no CPUs
  CHECK(reading.own.size() == 5);
  CHECK(reading.unread == 0);
}

TEST_CASE("self-test, reader: containers of containerd 2, whose shim only the sandbox names") {
  SelftestNode node;
  node.start_vm("uid-vm", {"0-1,4-7", "0-1,4-7", "2", "3"});
  node.start_runc("uid-runc", "0-1,4-7");
  node.forget_containers_shims();
  Reader reader = node.reader();
  const Reading reading = reader.read("uid-vm");
  CHECK(reading.containers == std::map<std::string, std::string>{{"app", std::string(64, 'b')}});
  CHECK(part_of(reading.others, 201) == "container app 0-1,4-7");
}

TEST_CASE(
    "self-test, reader: a helper belongs to the VM by its cgroup; a starting shim is nothing") {
  SelftestNode node;
  node.start_vm("1-2-3", {"0", "0", "2", "3"});
  node.process(300, "helper", {"helper"}, "/kubepods.slice/kubepods-pod1_2_3.slice");
  node.process(301, "shim", {"shim", std::string(64, 'a'), "start"}, "/");
  Reader reader = node.reader();
  const Reading reading = reader.read("1-2-3");
  CHECK(part_of(reading.own, 300) == "helper 0-7");
  CHECK(part_of(reading.own, 301) == "not seen");
  CHECK(reader.has_processes(std::string(64, 'a')));
  node.stop_all();
  CHECK_FALSE(reader.has_tasks("1-2-3"));
}

TEST_CASE("self-test, kubelet: top-level keys are read, from YAML and JSON") {
  const auto yaml = top_level_scalars(
      "kind: KubeletConfiguration\n# note: no\nauthentication:\n  staticPodPath: /wrong\n"
      "staticPodPath: \"/etc/pods\"  # ours\nreservedSystemCPUs: 0-1 # two\nempty:\n");
  CHECK(yaml.at("staticPodPath") == "/etc/pods");
  CHECK(yaml.at("reservedSystemCPUs") == "0-1");
  CHECK_FALSE(yaml.contains("empty"));
  CHECK_FALSE(yaml.contains("  staticPodPath"));
  const auto json = top_level_scalars(R"( {"staticPodPath":"/p","authentication":{"a":"b"}})");
  CHECK(json.at("staticPodPath") == "/p");
  CHECK(json.size() == 1);
}

TEST_CASE("self-test, kubelet: flags override drop-ins, which override the configuration file") {
  SelftestNode node;
  const auto plain = find_kubelet(node.root().path());
  REQUIRE(plain);
  CHECK(plain->manifests == node.root().path() / SelftestNode::kManifests);
  CHECK_FALSE(plain->has_api_server);
  node.root().write("etc/kubelet.d/10.conf", "staticPodPath: /other\nreservedSystemCPUs: \"0\"\n");
  node.process(1, "kubelet",
               {"kubelet", "--config=/etc/kubelet.yaml", "--config-dir=/etc/kubelet.d",
                "--kubeconfig=/k", "--reserved-cpus=1"},
               "/");
  const auto found = find_kubelet(node.root().path());
  REQUIRE(found);
  CHECK(found->manifests == node.root().path() / "other");
  CHECK(found->reserved == cpus("1"));
  CHECK(found->has_api_server);
  std::filesystem::remove_all(node.root().path() / "proc/1");
  CHECK(find_kubelet(node.root().path()).error().code == base::ErrorCode::kNotFound);
}

TEST_CASE("self-test, kubelet: without the static policy no container owns CPUs") {
  const SelftestNode node;
  const auto state = node.root().path() / SelftestNode::kState;
  CHECK(read_assignments(state)->pool == cpus("0-7"));
  node.root().write(SelftestNode::kState, R"({"policyName":"none","defaultCpuSet":""})");
  CHECK(read_assignments(state).error().message.find("\"none\"") != std::string::npos);
}
