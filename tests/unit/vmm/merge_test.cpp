// SPDX-License-Identifier: Apache-2.0
// Backends that contradict each other: each contradiction is named, and the one with more trust
// is believed.
#include "vmm/merge.hpp"

#include "tests/catch.hpp"
#include "tests/discovery.hpp"
#include "tests/unit/vmm/fixture.hpp"

using namespace ka;
using ka::policy::Role;
using ka::vmm::Claim;
using ka::vmm::Claims;
using ka::vmm::Merge;

namespace {

Claim vcpu(int tid, std::optional<int> index, std::optional<int> apic_id) {
  return {.tid = tid, .role = Role::kVcpu, .index = index, .apic_id = apic_id, .iothread = {}};
}

Claim iothread(int tid, std::string id) {
  return {
      .tid = tid, .role = Role::kIothread, .index = {}, .apic_id = {}, .iothread = std::move(id)};
}

std::vector<vmm::SeenThread> threads(int first, int last) {
  std::vector<vmm::SeenThread> list;
  for (int tid = first; tid <= last; ++tid) list.push_back({.key = {1, tid, 1}, .comm = ""});
  return list;
}

}  // namespace

TEST_CASE("every contradiction is reported and the first claim wins") {
  struct Row {
    Claim first;
    Claim second;
    std::string conflict;
  };
  const std::vector<Row> rows = {
      {vcpu(10, 0, {}), vcpu(10, 1, {}), "thread 10: weak says vCPU 1, but strong says vCPU 0"},
      {vcpu(10, {}, 4), vcpu(10, {}, 5),
       "thread 10: weak says vCPU (APIC id 5), but strong says vCPU (APIC id 4)"},
      {vcpu(10, 0, {}), vcpu(11, 0, {}),
       "thread 11: weak says vCPU 0, but strong says that is thread 10"},
      {vcpu(10, {}, 4), vcpu(11, 3, 4),
       "thread 11: weak says vCPU 3 (APIC id 4), but strong says that is thread 10"},
      {vcpu(10, 0, {}), iothread(10, "io"),
       "thread 10: weak says iothread \"io\", but strong says vCPU 0"},
      {iothread(10, "a"), iothread(10, "b"),
       "thread 10: weak says iothread \"b\", but strong says iothread \"a\""},
      {iothread(10, "a"), vcpu(10, 0, {}),
       "thread 10: weak says vCPU 0, but strong says iothread \"a\""},
      {vcpu(10, 0, {}), vcpu(99, 1, {}),
       "thread 99: weak says vCPU 1, but it is not a thread of the VMM"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.conflict);
    Merge merge(threads(10, 11));
    merge.add({.list = {row.first}, .source = "strong"});
    merge.add({.list = {row.second}, .source = "weak"});
    CHECK(merge.conflicts() == std::vector<std::string>{row.conflict});
    CHECK(*merge.find(10) == row.first);
    CHECK(merge.find(row.second.tid == 10 ? 11 : row.second.tid) == nullptr);
  }
}

TEST_CASE("agreeing backends fill each other's gaps") {
  Merge merge(threads(10, 11));
  merge.add({.list = {vcpu(10, {}, 4), vcpu(11, {}, 0)}, .source = "debugfs"});
  merge.add({.list = {vcpu(10, 1, 4)}, .source = "qmp"});
  merge.add({.list = {vcpu(10, 1, {}), vcpu(11, 0, {})}, .source = "names"});
  CHECK(merge.conflicts().empty());
  CHECK(*merge.find(10) == vcpu(10, 1, 4));
  CHECK(*merge.find(11) == vcpu(11, 0, 0));
  CHECK(merge.vcpu_source() == "debugfs, index by qmp+names");
}

TEST_CASE(
    "of two backends of which one was tampered with, the difference is found, wherever it is") {
  constexpr int kVcpus = 4;
  for (int victim = 0; victim < kVcpus; ++victim) {
    for (int stolen = 0; stolen < kVcpus; ++stolen) {
      if (stolen == victim) continue;
      Claims strong{.list = {}, .source = "strong"};
      Claims weak{.list = {}, .source = "weak"};
      for (int i = 0; i < kVcpus; ++i) {
        strong.list.push_back(vcpu(10 + i, i, 2 * i));
        weak.list.push_back(vcpu(10 + i, i == victim ? stolen : i, {}));
      }
      Merge merge(threads(10, 10 + kVcpus));
      merge.add(strong);
      merge.add(weak);
      CHECK(merge.conflicts().size() == 1);
      for (int i = 0; i < kVcpus; ++i) CHECK(*merge.find(10 + i) == vcpu(10 + i, i, 2 * i));
    }
  }
}

TEST_CASE("an APIC id equal to another's index gives way") {
  Merge merge(threads(10, 12));
  merge.add({.list = {vcpu(10, 0, {})}, .source = "names"});
  merge.add({.list = {vcpu(12, {}, 2), vcpu(11, {}, 0)}, .source = "debugfs"});
  merge.complete_indices();
  CHECK(merge.find(11)->index == 1);
  CHECK(merge.find(12)->index == 2);
}

TEST_CASE("discovery reports contradictions of its backends") {
  const tests::FakeNode node;
  node.process(40, 1, "qemu-system-x86", "/usr/bin/qemu-system-x86_64");
  node.thread(40, 41, "CPU 1/KVM");
  node.kvm_vcpu("40-9", 0, 41);
  const vmm::MonitorFacts monitor{.source = "qmp",
                                  .vcpus = {{.facts = {.index = 0, .apic_id = 0}, .tid = 41}},
                                  .iothreads = {}};
  const auto found =
      tests::discover(tests::roots_of(node), {.vmm = tests::process_id(40)}, &monitor);
  REQUIRE(found);
  CHECK(found->conflicts ==
        std::vector<std::string>{
            "thread 41: thread-names says vCPU 1, but qmp says vCPU 0 (APIC id 0)"});
  CHECK(tests::vcpus(*found) == "0:0");
}
