// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/domains.hpp"

#include "tests/catch.hpp"

using namespace ka::policy;
using namespace ka::policy::plan;

namespace {

const DomainRules kConfigured{{"vm1"}, false};
const DomainRules kByAnnotation{{}, true};

}  // namespace

TEST_CASE("a domain is the sandbox that runs it, before the one of its name") {
  CHECK(find_domain_owners({}, kConfigured) == DomainOwners{{"vm1", "vm1"}});
  CHECK(find_domain_owners({{"pod1", "vm1", "", false}}, kConfigured) ==
        DomainOwners{{"vm1", "vm1"}});
  CHECK(find_domain_owners({{"pod1", "vm1", "", true}}, kConfigured) ==
        DomainOwners{{"vm1", "pod1"}});
}

TEST_CASE("of two pods known as a domain, the one with the VM is it, or the first") {
  CHECK(find_domain_owners({{"a", "vm1", "", false}, {"b", "vm1", "", false}}, {}) ==
        DomainOwners{{"vm1", "a"}});
  CHECK(find_domain_owners({{"a", "vm1", "", false}, {"b", "vm1", "", true}}, {}) ==
        DomainOwners{{"vm1", "b"}});
}

TEST_CASE("a pod names its domain only if allowed, and takes over no other's") {
  const std::vector<DomainPod> pods{
      {"a", "", "vm1", false}, {"b", "", "vm1", false}, {"c", "vm2", "", false},
      {"d", "", "vm2", false}, {"e", "", "vm3", true},
  };
  CHECK(find_domain_owners(pods, {}) == DomainOwners{{"vm2", "c"}});
  const auto owners = find_domain_owners(pods, kByAnnotation);
  CHECK(owners == DomainOwners{{"vm1", "a"}, {"vm2", "c"}});
  using enum DomainRefusal;
  CHECK_FALSE(domain_refusal(pods[0], kByAnnotation, owners));
  CHECK(domain_refusal(pods[1], kByAnnotation, owners) == kTaken);
  CHECK_FALSE(domain_refusal(pods[2], kByAnnotation, owners));
  CHECK(domain_refusal(pods[3], kByAnnotation, owners) == kTaken);
  CHECK(domain_refusal(pods[4], kByAnnotation, owners) == kOwnVm);
  CHECK(domain_refusal(pods[0], {}, owners) == kNotAllowed);
  CHECK_FALSE(domain_refusal({"f", "", "", false}, {}, owners));
}

TEST_CASE("a pod known as a domain needs no permission") {
  CHECK(domain_refusal({"a", "vm1", "", true}, {}, {{"vm1", "b"}}) == DomainRefusal::kTaken);
  CHECK_FALSE(domain_refusal({"a", "vm1", "vm2", true}, {}, {{"vm1", "a"}}));
}

TEST_CASE("libvirt records what is placed: vCPUs by index, iothreads by libvirt's numbers") {
  SandboxPlan plan;
  plan.roles[Role::kEmulator] = {0, 1};
  plan.vcpus = {{.index = 0, .cpus = {2}}, {.index = 3, .cpus = {4, 5}, .placed = false}};
  plan.iothreads = {{"iothread7", {1}}, {"iothread7x", {1}}, {"iothread", {1}}, {"mine", {1}}};
  CHECK(domain_pins(plan) == DomainPins{{{0, {2}}}, {0, 1}, {{7, {1}}}});
}

TEST_CASE("a domain's nodes only grow until its memory has arrived") {
  MemoryFacts facts;
  const NodeSet node{0};
  MemoryPlan plan{.verdict = MemoryVerdict::kInPlace, .wanted = node};
  const auto memory = [&](bool moving = false) {
    return domain_memory(node, MemoryPlace{facts, plan, moving});
  };
  CHECK_FALSE(domain_memory({}, MemoryPlace{facts, plan}));
  CHECK(domain_memory(node, std::nullopt) == DomainMemory{node, false});
  CHECK(memory() == DomainMemory{node, true});
  CHECK(memory(true) == DomainMemory{node, false});
  facts.bound = {{1, 4096}};  // libvirt would have the kernel move it at once
  CHECK(memory() == DomainMemory{node, false});
  facts.bound = {{0, 4096}, {1, 0}};
  CHECK(memory() == DomainMemory{node, true});
  plan.wanted = NodeSet{1};  // of an earlier plan
  CHECK(memory() == DomainMemory{node, false});
  plan.wanted = node;
  plan.verdict = MemoryVerdict::kMove;
  CHECK(memory() == DomainMemory{node, false});
  plan.verdict = MemoryVerdict::kDevice;
  CHECK_FALSE(memory());
}
