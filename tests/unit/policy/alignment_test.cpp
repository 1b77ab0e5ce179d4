// SPDX-License-Identifier: Apache-2.0
// CPUs, memory and devices on the same NUMA nodes: 16 CPUs in 2 nodes, CPUs 0-3 and 8-11 on node 0.
#include "policy/managed/alignment.hpp"

#include "policy/managed/books.hpp"
#include "policy/managed/trial.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"

using namespace ka::policy;
using namespace ka::policy::managed;
using allocate::HintPolicy;
using Kind = Problem::Kind;

namespace {

constexpr std::int64_t kPeriod = 100000;
constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;

const allocate::Machine& machine() {
  static const allocate::Machine kMachine = ka::test::grid_machine({.sockets = 2});
  return kMachine;
}

MemoryRoom room(std::uint64_t node0, std::uint64_t node1) {
  return {{kOrdinaryPage, {.free = {{0, node0}, {1, node1}}, .total = {{0, 100}, {1, 100}}}}};
}

/// "0!": nodes 0, preferred; "refused".
std::string aligned(HintPolicy policy, int cpus, const Needs& needs, const MemoryRoom& memory,
                    const CpuSet& available = machine().cpus()) {
  const auto merged = align({.machine = machine(),
                             .policy = policy,
                             .options = {},
                             .available = available,
                             .former = {},
                             .cpus = cpus},
                            needs, memory);
  if (!merged.admit) return "refused";
  return (merged.affinity ? format_list(*merged.affinity) : "any") + (merged.preferred ? "!" : "");
}

Candidate of(const std::string& id, int cpus, const std::string& pod = {}) {
  return {.sandbox = pod.empty() ? "s-" + id : pod,
          .id = id,
          .pod_uid = "uid-" + id,
          .pod_name = "shop/" + id,
          .name = id,
          .guaranteed = true,
          .requested = {},
          .quota = cpus * kPeriod,
          .period = kPeriod};
}

Books opened(const Rules& rules) { return Books::open(machine().topology(), rules).value(); }

Locality with_memory(std::uint64_t bytes, const MemoryRoom& memory) {
  return {.needs = {.memory = {{kOrdinaryPage, bytes}}, .devices = {}}, .pod = {}, .room = memory};
}

}  // namespace

TEST_CASE("CPUs go where memory has room and where the device is") {
  const auto best = HintPolicy::kBestEffort;
  CHECK(aligned(best, 4, {}, {}) == "0!");
  CHECK(aligned(best, 4, {.memory = {{kOrdinaryPage, 50}}, .devices = {}}, room(40, 60)) == "1!");
  CHECK(aligned(best, 4, {.memory = {}, .devices = {{1}}}, {}) == "1!");
  const Needs huge{.memory = {{kHugePage, kHugePage}}, .devices = {}};
  const MemoryRoom huge_room{
      {kHugePage, {.free = {{0, 0}, {1, kHugePage}}, .total = {{0, kHugePage}, {1, kHugePage}}}}};
  CHECK(aligned(best, 4, huge, huge_room) == "1!");
  SECTION("what nobody measured or no node has does not count") {
    CHECK(aligned(best, 4, huge, {}) == "0!");
    CHECK(aligned(best, 4, {.memory = {}, .devices = {{7}}}, {}) == "0!");
  }
}

TEST_CASE("what cannot be aligned is refused, or placed for its CPUs") {
  const Needs far{.memory = {}, .devices = {{1}}};
  const CpuSet node0 = machine().topology().node_cpus(0);
  CHECK(aligned(HintPolicy::kSingleNumaNode, 4, far, {}, node0) == "refused");
  CHECK(aligned(HintPolicy::kRestricted, 4, far, {}, node0) == "refused");
  CHECK(aligned(HintPolicy::kBestEffort, 4, far, {}, node0) == "0");
  SECTION("more than one node has: restricted admits what an empty machine could not do better") {
    CHECK(aligned(HintPolicy::kRestricted, 12, {}, {}) == "0-1!");
    CHECK(aligned(HintPolicy::kSingleNumaNode, 12, {}, {}) == "refused");
  }
}

TEST_CASE("a container that cannot be aligned has no class, and says why") {
  Books books = opened({.align = HintPolicy::kSingleNumaNode});
  books.create(of("small", 4));
  books.create(of("large", 9));
  CHECK(books.entries().at("large").problem == Problem{Kind::kNotAligned, 9, 0});
  CHECK(books.cpus_of("large") == books.shared_pool());
  SECTION("too few CPUs are that") {
    books.create(of("huge", 14));
    CHECK(books.entries().at("huge").problem->kind == Kind::kNotEnough);
  }
  SECTION("an operator cannot give it the class either") {
    CHECK(books.change("large", CpuUse::kExclusive) == Problem{Kind::kNotAligned, 9, 0});
  }
}

TEST_CASE("a container that comes back gets its CPUs though another node is as good now") {
  Books books = opened({.align = HintPolicy::kRestricted});
  books.create(of("app", 2), with_memory(50, room(40, 60)));
  const CpuSet before = books.cpus_of("app");
  CHECK(machine().topology().nodes_of(before) == NodeSet{1});
  books.end("app");
  Candidate again = of("app2", 2);
  again.pod_uid = "uid-app";
  again.name = "app";
  books.create(again, with_memory(50, room(60, 60)));
  CHECK(books.cpus_of("app2") == before);
  SECTION("but not where it would be refused there") {
    books.end("app2");
    again.id = "app3";
    books.create(again, with_memory(50, room(60, 40)));
    CHECK(machine().topology().nodes_of(books.cpus_of("app3")) == NodeSet{0});
  }
}

TEST_CASE("pod scope: one set of nodes for what all containers of a pod need") {
  Rules rules{.align = HintPolicy::kSingleNumaNode, .align_pods = true};
  Books books = opened(rules);
  books.create(of("other", 4));
  REQUIRE(machine().topology().nodes_of(books.cpus_of("other")) == NodeSet{0});
  Locality locality;
  locality.pod = {.cpus = 6, .needs = {}};
  books.create(of("first", 2, "pod"), locality);
  books.create(of("second", 4, "pod"), locality);
  const auto& topology = machine().topology();
  CHECK(topology.nodes_of(books.cpus_of("first")) == NodeSet{1});
  CHECK(topology.nodes_of(books.cpus_of("second")) == NodeSet{1});
  SECTION("also after a restart") {
    Books restored = opened(rules);
    restored.restore(books.save());
    CHECK(restored == books);
    restored.create(of("third", 1, "pod"), locality);
    CHECK(topology.nodes_of(restored.cpus_of("third")) == NodeSet{1});
  }
  SECTION("by container the first goes where there is room for it alone") {
    rules.align_pods = false;
    Books single = opened(rules);
    single.create(of("other", 4));
    single.create(of("first", 2, "pod"), locality);
    CHECK(topology.nodes_of(single.cpus_of("first")) == NodeSet{0});
  }
}

TEST_CASE("nodes have room if they hold all of it together, of each page size") {
  const MemoryRoom memory{{kOrdinaryPage, {.free = {{0, 4}, {1, 4}}, .total = {}}},
                          {kHugePage, {.free = {{0, kHugePage}}, .total = {}}}};
  CHECK(has_room({0, 1}, {.memory = {{kOrdinaryPage, 8}}, .devices = {}}, memory));
  CHECK_FALSE(has_room({0, 1}, {.memory = {{kOrdinaryPage, 9}}, .devices = {}}, memory));
  CHECK_FALSE(has_room({0}, {.memory = {{kOrdinaryPage, 5}}, .devices = {}}, memory));
  CHECK(has_room({0}, {.memory = {{kHugePage, kHugePage}}, .devices = {}}, memory));
  CHECK_FALSE(has_room({1}, {.memory = {{kHugePage, kHugePage}}, .devices = {}}, memory));
  CHECK_FALSE(has_room({0}, {.memory = {{1 << 30, 1}}, .devices = {}}, memory));
}

TEST_CASE("a pod that is tried shows its CPUs and whom it would move, and changes nothing") {
  Books books = opened({.min_shared = 2});
  books.create(of("burst", 0));
  books.create(of("own", 4));
  const Books before = books;
  const auto first = [](const std::string& id, int cpus, bool ends) {
    return TrialContainer{of(id, cpus, "pod"), {}, ends};
  };
  const Trial trial = try_pod(books, {first("init", 10, true), first("app", 8, false)});
  CHECK(trial.fits());
  CHECK(books == before);
  REQUIRE(trial.containers.size() == 2);
  CHECK(trial.containers[0].cpus.size() == 10);
  CHECK(trial.containers[1].cpus.size() == 8);
  REQUIRE(trial.moves.size() == 1);
  CHECK(trial.moves[0].entry.about.id == "burst");
  CHECK(trial.moves[0].to == trial.moves[0].from - trial.containers[1].cpus);
  books.create(of("app", 8, "pod"));
  CHECK(books.cpus_of("app") == trial.containers[1].cpus);
  SECTION("what does not fit says why") {
    const Trial large = try_pod(books, {first("large", 3, false)});
    CHECK_FALSE(large.fits());
    CHECK_FALSE(large.refused);
    CHECK(large.containers[0].entry.problem->kind == Kind::kNotEnough);
  }
  SECTION("or would not be created") {
    Books strict = opened({.refuse = true});
    const Trial large = try_pod(strict, {first("large", 16, false)});
    CHECK(large.refused);
    CHECK_FALSE(large.fits());
    CHECK(large.containers[0].cpus.empty());
  }
}

TEST_CASE("memory is bound with CPUs of its own, and free again without them") {
  Books books = opened({.bind_memory = true});
  Locality locality = with_memory(40, room(40, 60));
  books.create(of("unknown", 2), locality);
  CHECK(books.entries().at("unknown").mems.empty());
  locality.bindable = true;
  books.create(of("app", 2), locality);
  CHECK(books.entries().at("app").mems == NodeSet{0});
  books.create(of("large", 2), {.needs = {.memory = {{kOrdinaryPage, 50}}, .devices = {}},
                                .pod = {},
                                .room = room(40, 60),
                                .bindable = true});
  CHECK(books.entries().at("large").memory_unbound);
  books.change("app", CpuUse::kNone);
  books.change("large", CpuUse::kNone);
  CHECK(books.entries().at("app").mems == NodeSet{0, 1});
  CHECK_FALSE(books.entries().at("large").memory_unbound);
}
