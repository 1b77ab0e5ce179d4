// SPDX-License-Identifier: Apache-2.0
// 100,000 random steps of nodes whose CPUs we hand out: containers come, go, vanish, grow, change
// class, come back; CPUs go offline; the books are saved and read again. After each step no CPU has
// two owners, nothing is lost, and the shared pool is not empty.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "policy/managed/books.hpp"
#include "tests/catch.hpp"
#include "tests/property/allocate/random.hpp"

using namespace ka::policy;
using namespace ka::policy::managed;
using ka::test::Random;

namespace {

constexpr std::int64_t kPeriod = 100000;

Rules random_rules(Random& random, const Topology& topology) {
  Rules rules;
  rules.placement = random.one_of<std::string>({"fitted", "packed", "distributed"});
  rules.min_shared = random.between(1, 2);
  if (random.chance(30)) rules.reserved = random.part_of(topology.online(), 15);
  if (random.chance(30)) rules.infra = random.part_of(topology.online(), 15) - rules.reserved;
  if (random.chance(30)) {
    rules.exclusive = random.part_of(topology.online(), 70) - rules.reserved - rules.infra;
  }
  if (random.chance(30)) rules.options.add(allocate::CpuOption::kFullPcpusOnly);
  using allocate::HintPolicy;
  rules.align = random.one_of<HintPolicy>({HintPolicy::kNone, HintPolicy::kBestEffort,
                                           HintPolicy::kRestricted, HintPolicy::kSingleNumaNode});
  rules.align_pods = random.chance(50);
  rules.bind_memory = random.chance(50);
  rules.infra_namespaces = {"kube-system"};
  rules.by_namespace = {{"batch", CpuUse::kShare}};
  rules.allowed = {CpuUse::kExclusive, CpuUse::kShare};
  rules.refuse = random.chance(30);
  return rules;
}

/// A node, and what a runtime would know of its containers.
struct Play {
  explicit Play(unsigned seed)
      : random(seed), topology(ka::test::random_machine(random).topology()), books(open_books()) {}

  Books open_books() {
    for (;;) {
      auto opened = Books::open(topology, random_rules(random, topology));
      if (opened) return *std::move(opened);
    }
  }

  Candidate candidate() {
    const int pod = random.below(12);
    const int quota = random.between(-1, std::max(2, topology.online().size() / 3));
    Candidate made{.sandbox = "s" + std::to_string(pod),
                   .id = "c" + std::to_string(++last),
                   .pod_uid = "uid-" + std::to_string(pod),
                   .pod_name = random.one_of<std::string>({"a", "batch", "kube-system"}) + "/p",
                   .name = random.one_of<std::string>({"app", "side"}),
                   .guaranteed = random.chance(60),
                   .quota = quota * kPeriod + (random.chance(10) ? kPeriod / 2 : 0),
                   .period = kPeriod};
    if (random.chance(30)) {
      made.requested = random.one_of<std::string>({"none", "exclusive", "share", "mine"});
    }
    return made;
  }

  /// Some memory here and there, a device somewhere.
  Locality locality() {
    Locality made;
    const std::vector<int> nodes = topology.nodes().ids();
    for (const int node : nodes) {
      auto& memory = made.room[kOrdinaryPage];
      memory.total[node] = 8;
      memory.free[node] = static_cast<std::uint64_t>(random.between(0, 8));
    }
    made.needs.memory[kOrdinaryPage] = static_cast<std::uint64_t>(random.between(0, 12));
    if (random.chance(30)) made.needs.devices.push_back({random.one_of(nodes)});
    made.pod = {random.between(0, 8), made.needs};
    made.bindable = random.chance(70);
    return made;
  }

  std::string any_id() {
    if (books.entries().empty()) return "none";
    auto entry = books.entries().begin();
    std::advance(entry, random.below(static_cast<int>(books.entries().size())));
    return entry->first;
  }

  void synchronize() {
    std::vector<Listed> all;
    for (const auto& [id, entry] : books.entries()) {
      if (!entry.ended && random.chance(85)) all.push_back({entry.about, books.cpus_of(id)});
    }
    if (random.chance(50)) all.push_back({candidate(), {}});
    std::set<std::string> pods;
    for (int pod = 0; pod < 12; ++pod) {
      if (random.chance(80)) pods.insert("s" + std::to_string(pod));
    }
    books.synchronize(all, pods);
    std::size_t live = 0;
    for (const auto& [id, entry] : books.entries()) {
      live += entry.ended ? 0 : 1;
      if (entry.ended) CHECK(pods.contains(entry.about.sandbox));
    }
    CHECK(live == all.size());
  }

  /// What happens while nothing can be written gives no CPU away.
  void run_unsaved() {
    const CpuSet before = books.exclusive();
    books.hold_growth(true);
    const int kind = random.below(4);
    if (kind == 0) books.end(any_id());
    if (kind == 1) books.remove(any_id());
    if (kind == 2) synchronize();
    if (kind == 3) change_machine();
    CHECK(books.exclusive().subset_of(before));
    books.hold_growth(false);
    if (random.chance(50)) books.reconcile();
  }

  void change_outside() {
    CpuSet cpus;
    for (const auto& cpu : topology.cpus()) {
      if (random.chance(20)) cpus |= CpuSet{cpu.cpu};
    }
    const Books before = books;
    books.set_outside(random.chance(30) ? CpuSet() : cpus);
    for (const auto& [id, entry] : before.entries()) {
      if (entry.use != CpuUse::kExclusive) continue;
      // One that waited for CPUs may have got them, and then what its limit has become meanwhile.
      const CpuSet now = books.cpus_of(id);
      CHECK((before.cpus_of(id).subset_of(now) || now.size() * kPeriod == entry.about.quota));
    }
    CHECK(books.shared_pool().size() >= std::min(1, books.rules().min_shared));
  }

  void change_machine() {
    std::vector<Cpu> cpus = topology.cpus();
    Cpu& cpu = cpus[static_cast<std::size_t>(random.below(static_cast<int>(cpus.size())))];
    cpu.online = !cpu.online;
    auto changed = Topology::make(cpus, topology.distances(), topology.nodes().ids());
    // A daemon does not run on a machine that its rules do not fit.
    if (!changed || !Books::open(*changed, books.rules())) return;
    topology = *changed;
    books.change_machine(topology);
  }

  void restart() {
    books.set_outside({});
    books.reconcile();
    Books again = Books::open(topology, books.rules()).value();
    again.restore(books.save());
    CHECK(again == books);
    CHECK(again.shared_pool() == books.shared_pool());
    books = std::move(again);
  }

  /// Whether it was refused.
  bool step() {
    const int kind = random.below(100);
    if (kind < 45) return books.create(candidate(), locality()).has_value();
    if (kind < 55) return void(books.end(any_id())), false;
    if (kind < 65) return void(books.remove(any_id())), false;
    if (kind < 69) return void(books.remove_pod("s" + std::to_string(random.below(12)))), false;
    if (kind < 82) {
      return books.resize(any_id(), random.between(-1, 6) * kPeriod, kPeriod).has_value();
    }
    if (kind < 94) {
      const auto use = random.one_of<CpuUse>({CpuUse::kNone, CpuUse::kExclusive, CpuUse::kShare});
      if (kind % 2 == 0) return books.change(any_id(), use).has_value();
      books.request(any_id(), std::string(class_name(use)));
      return false;
    }
    if (kind < 96) synchronize();
    if (kind == 96) change_machine();
    if (kind == 97) run_unsaved();
    if (kind == 98) change_outside();
    if (kind > 98) restart();
    return false;
  }

  void check() const {
    CpuSet owned;
    const CpuSet shared = books.shared_pool();
    for (const auto& [id, entry] : books.entries()) {
      const CpuSet cpus = books.cpus_of(id);
      if (entry.ended) {
        CHECK(cpus.empty());
        continue;
      }
      if (entry.infra) {
        CHECK(cpus == (books.infra().empty() ? books.shared_pool() : books.infra()));
        continue;
      }
      REQUIRE_FALSE(cpus.empty());
      CHECK((entry.mems.empty() || topology.nodes_of(cpus).subset_of(entry.mems)));
      CHECK(cpus.subset_of(topology.online()));
      if (entry.use == CpuUse::kExclusive) {
        CHECK_FALSE(cpus.intersects(owned));
        CHECK_FALSE(cpus.intersects(shared));
        owned |= cpus;
        const bool is_short = entry.problem.has_value();
        if (!is_short) CHECK(cpus.size() * kPeriod == entry.about.quota);
      } else {
        CHECK(cpus.subset_of(shared));
      }
    }
    // Nothing leaks: what is not owned by a container that is there is shared.
    CHECK(owned == books.exclusive());
    CHECK((owned | shared) == topology.online() - books.rules().infra - books.outside());
    CHECK_FALSE(books.outside().intersects(owned | books.rules().reserved));
    CHECK_FALSE(shared.empty());
    CHECK_FALSE(owned.intersects(books.kept_shared()));
  }

  Random random;
  Topology topology;
  Books books;
  int last = 0;
};

}  // namespace

TEST_CASE("over 100,000 random steps no CPU has two owners, none is lost, some are shared") {
  const unsigned seed = ka::test::first_seed();
  int refused = 0;
  for (unsigned i = 0; i < 200; ++i) {
    CAPTURE(seed + i);
    Play play(seed + i);
    for (int step = 0; step < 500; ++step) {
      CAPTURE(step);
      const Books before = play.books;
      if (play.step()) {
        ++refused;
        CHECK(play.books == before);
      }
      play.check();
    }
  }
  CHECK(refused > 1000);
}
