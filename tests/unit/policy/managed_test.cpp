// SPDX-License-Identifier: Apache-2.0
// The books of a node whose CPUs we hand out: 8 CPUs, 4 cores with 2 threads (0 and 4, 1 and 5,
// ...), one node.
#include "policy/managed/books.hpp"

#include "tests/catch.hpp"
#include "tests/machines.hpp"

using namespace ka::policy;
using namespace ka::policy::managed;
using Kind = Problem::Kind;

namespace {

constexpr std::int64_t kPeriod = 100000;

Topology machine() { return ka::test::grid_machine({}).topology(); }

Topology without(const CpuSet& offline) {
  auto all = ka::test::grid_cpus({});
  for (Cpu& cpu : all) cpu.online = !offline.contains(cpu.cpu);
  return Topology::make(all).value();
}

Books opened(Rules rules = {}) { return Books::open(machine(), std::move(rules)).value(); }

/// "shop/cart" and so on; `cpus` is its limit.
Candidate of(const std::string& id, double cpus, bool guaranteed = true) {
  return {.sandbox = "s-" + id,
          .id = id,
          .pod_uid = "uid-" + id,
          .pod_name = "shop/" + id,
          .name = "app",
          .guaranteed = guaranteed,
          .requested = {},
          .quota = static_cast<std::int64_t>(cpus * kPeriod),
          .period = kPeriod};
}

Candidate asking(const std::string& id, double cpus, const std::string& requested) {
  Candidate candidate = of(id, cpus, false);
  candidate.requested = requested;
  return candidate;
}

std::string cpus(const Books& books, const std::string& id) {
  return format_list(books.cpus_of(id));
}

std::optional<Kind> problem(const Books& books, const std::string& id) {
  const auto& found = books.entries().at(id).problem;
  return found ? std::optional(found->kind) : std::nullopt;
}

std::string wrong(Rules rules) {
  const auto books = Books::open(machine(), std::move(rules));
  return books ? "" : books.error();
}

}  // namespace

TEST_CASE("without an infra pool its containers run in the shared pool") {
  Books before = opened({.infra = {0}, .infra_namespaces = {"shop"}});
  before.create(of("app", 0.5));
  REQUIRE(cpus(before, "app") == "0");
  Books books = opened();
  books.restore(before.save());
  CHECK(cpus(books, "app") == "0-7");
  books.create({.sandbox = "s",
                .id = "own",
                .pod_name = "jobs/own",
                .name = "app",
                .guaranteed = true,
                .requested = {},
                .quota = kPeriod,
                .period = kPeriod});
  CHECK_FALSE(books.cpus_of("app").intersects(books.cpus_of("own")));
}

TEST_CASE("CPUs are chosen by the steps that the rules name") {
  std::vector<std::string> steps;
  for (const auto& step : allocate::packed_policy().steps) steps.emplace_back(step.name);
  Books books = opened({.steps = steps});
  books.create(of("own", 2));
  CHECK(cpus(books, "own") == "1,5");
  std::erase(steps, "spill");
  CHECK(wrong({.steps = steps}) == "steps: the step spill is missing");
}

TEST_CASE("whole CPUs of a Guaranteed pod are its own, and shared again when it ends") {
  Books books = opened();
  books.create(of("free", 0.5));
  books.create(of("own", 2));
  CHECK(cpus(books, "own") == "1,5");
  CHECK(cpus(books, "free") == "0,2-4,6-7");
  books.create(of("burst", 2, false));
  CHECK(cpus(books, "burst") == "0,2-4,6-7");
  books.end("own");
  CHECK(cpus(books, "free") == "0-7");
  CHECK(cpus(books, "own").empty());
}

TEST_CASE("a container that comes back under another id gets the CPUs that it had") {
  Books books = opened();
  books.create(of("a", 2));
  books.create(of("b", 2));
  const std::string had = cpus(books, "b");
  books.end("a");
  books.end("b");
  Candidate again = of("b", 2);
  again.id = "b2";
  books.create(again);
  CHECK(cpus(books, "b2") == had);
  CHECK_FALSE(books.entries().contains("b"));
  // Also where its exit was never reported.
  again.id = "b3";
  books.create(again);
  CHECK(cpus(books, "b3") == had);
  CHECK(books.exclusive().size() == 2);
}

TEST_CASE("pods choose among the classes that the configuration allows") {
  Books books = opened({.by_namespace = {{"batch", CpuUse::kShare}}, .allowed = {CpuUse::kShare}});
  books.create(asking("share", 2, "share"));
  CHECK(books.cpus_of("share").size() == 2);
  CHECK(books.exclusive().empty());
  books.create(asking("greedy", 2, "exclusive"));
  CHECK(problem(books, "greedy") == Kind::kNotAllowed);
  CHECK(cpus(books, "greedy") == "0-7");
  books.create(asking("typo", 2, "own"));
  CHECK(problem(books, "typo") == Kind::kUnknownClass);
  books.create(asking("half", 1.5, "share"));
  CHECK(problem(books, "half") == Kind::kNotWhole);
  Candidate batch = of("batch", 2);
  batch.pod_name = "batch/job";
  books.create(batch);
  CHECK(books.entries().at("batch").use == CpuUse::kShare);
  // What the configuration gives anyway may be named.
  Candidate guaranteed = of("named", 2);
  guaranteed.requested = "exclusive";
  books.create(guaranteed);
  CHECK(books.entries().at("named").use == CpuUse::kExclusive);
}

TEST_CASE("reserved CPUs and a floor stay shared, whatever is asked for") {
  Books books = opened({.reserved = {0}, .min_shared = 2});
  books.create(of("most", 6));
  CHECK(cpus(books, "most") == "1-3,5-7");
  CHECK(format_list(books.shared_pool()) == "0,4");
  books.create(of("more", 1));
  CHECK(problem(books, "more") == Kind::kNotEnough);
  CHECK(cpus(books, "more") == "0,4");
}

TEST_CASE("the last CPU is shared even where nothing is reserved") {
  Books books = opened();
  books.create(of("all", 8));
  CHECK(problem(books, "all") == Kind::kNotEnough);
  books.create(of("seven", 7));
  CHECK(cpus(books, "seven") == "1-7");
  CHECK(format_list(books.shared_pool()) == "0");
}

TEST_CASE("a container that cannot have its class is refused where that is configured") {
  Books books = opened({.refuse = true});
  const auto refused = books.create(asking("greedy", 2, "exclusive"));
  REQUIRE(refused);
  CHECK(refused->kind == Kind::kNotAllowed);
  CHECK(books.entries().empty());
  CHECK_FALSE(books.create(of("plain", 0.5)));
}

TEST_CASE("infra containers have CPUs that no others have") {
  Books books = opened({.infra = {0, 4}, .infra_namespaces = {"kube-system"}});
  Candidate proxy = of("proxy", 0.5);
  proxy.pod_name = "kube-system/proxy";
  books.create(proxy);
  books.create(of("free", 0.5));
  CHECK(cpus(books, "proxy") == "0,4");
  CHECK(cpus(books, "free") == "1-3,5-7");
  books.create(of("own", 5));
  CHECK(cpus(books, "proxy") == "0,4");
  CHECK(books.change("proxy", CpuUse::kExclusive) == Problem{Kind::kInfra});
}

TEST_CASE("a class changes while the container runs, and a refused change changes nothing") {
  Books books = opened();
  books.create(of("a", 2, false));
  books.create(of("b", 6));
  CHECK(cpus(books, "a") == "0,4");
  CHECK(books.change("a", CpuUse::kExclusive) == Problem{Kind::kNotEnough, 2, 1});
  CHECK(cpus(books, "a") == "0,4");
  CHECK_FALSE(books.change("b", CpuUse::kNone));
  CHECK(cpus(books, "b") == "0-7");
  CHECK_FALSE(books.change("a", CpuUse::kExclusive));
  CHECK(books.cpus_of("a").size() == 2);
  CHECK_FALSE(books.cpus_of("a").intersects(books.cpus_of("b")));
}

TEST_CASE(
    "a running container gets the class that its pod asks for now, as far as pods may choose") {
  Rules rules;
  rules.allowed = {CpuUse::kShare};
  Books books = opened(rules);
  books.create(of("a", 2));
  CHECK(books.exclusive() == books.cpus_of("a"));
  SECTION("an allowed one") {
    books.request("a", "share");
    CHECK(books.entries().at("a").use == CpuUse::kShare);
    CHECK(books.exclusive().empty());
    books.request("a", std::nullopt);
    CHECK(books.entries().at("a").use == CpuUse::kExclusive);
  }
  SECTION("one that is not allowed, or is none: it keeps what it has, and says why") {
    for (const auto& [text, kind] :
         {std::pair("none", Kind::kNotAllowed), std::pair("whole", Kind::kUnknownClass)}) {
      books.request("a", text);
      CHECK(problem(books, "a") == kind);
      CHECK(books.entries().at("a").use == CpuUse::kExclusive);
      CHECK(books.cpus_of("a").size() == 2);
    }
    books.request("a", std::nullopt);
    CHECK_FALSE(problem(books, "a"));
  }
  SECTION("too few CPUs are free: it keeps what it has") {
    books.request("a", "share");
    books.create(of("b", 6));
    books.request("a", std::nullopt);
    CHECK(problem(books, "a") == Kind::kNotEnough);
    CHECK(books.entries().at("a").use == CpuUse::kShare);
  }
  SECTION("what it asked for before does not undo what an operator has changed since") {
    books.request("a", "share");
    CHECK_FALSE(books.change("a", CpuUse::kNone));
    books.request("a", "share");
    CHECK(books.entries().at("a").use == CpuUse::kNone);
  }
  SECTION("one that has ended, or is not known, stays as it is") {
    books.end("a");
    const Books before = books;
    books.request("a", "share");
    books.request("z", "share");
    CHECK(books == before);
  }
}

TEST_CASE("growing keeps CPUs, and a limit that is not whole gives them back") {
  Books books = opened();
  books.create(of("a", 2));
  const CpuSet had = books.cpus_of("a");
  books.resize("a", 4 * kPeriod, 0);
  CHECK(books.cpus_of("a").size() == 4);
  CHECK(had.subset_of(books.cpus_of("a")));
  books.resize("a", 9 * kPeriod, 0);
  CHECK(books.cpus_of("a").size() == 4);
  CHECK(problem(books, "a") == Kind::kNotEnough);
  books.resize("a", 2 * kPeriod, 0);
  CHECK(books.cpus_of("a") == had);
  CHECK_FALSE(problem(books, "a"));
  books.resize("a", kPeriod / 2, 0);
  CHECK(problem(books, "a") == Kind::kNotWhole);
  CHECK(books.exclusive().empty());
  books.resize("a", kPeriod, 0);
  CHECK(books.exclusive().size() == 1);
}

TEST_CASE("containers made while nobody looked are shared, but for one that obviously owns CPUs") {
  Books books = opened();
  books.create(of("known", 2));
  books.create(of("gone", 2));
  const CpuSet had = books.cpus_of("known");
  books.synchronize({{of("known", 2), had},
                     {of("new", 2), {}},
                     {of("owner", 2), {3, 7}},
                     {of("pool", 2), {0, 2, 4, 6}}},
                    {});
  CHECK(books.cpus_of("known") == had);
  CHECK_FALSE(books.entries().contains("gone"));
  CHECK(books.entries().at("new").adopted);
  CHECK(books.entries().at("new").use == CpuUse::kNone);
  CHECK(cpus(books, "owner") == "3,7");
  CHECK(books.entries().at("pool").use == CpuUse::kNone);
  CHECK(cpus(books, "new") == format_list(books.shared_pool()));
}

TEST_CASE("a container that exited comes back to its CPUs, also after its runtime connected anew") {
  Books books = opened();
  Candidate first = of("first", 2);
  books.create(first);
  const CpuSet had = books.cpus_of("first");
  books.create(of("other", 2));
  books.end("first");
  books.synchronize({{of("other", 2), books.cpus_of("other")}}, {first.sandbox});
  CHECK(books.entries().at("first").former == had);
  first.id = "second";
  books.create(first);
  CHECK(books.cpus_of("second") == had);
  books.end("second");
  books.synchronize({{of("other", 2), books.cpus_of("other")}}, {});
  CHECK_FALSE(books.entries().contains("second"));
}

TEST_CASE("CPUs that someone else gave away are in no pool, but for the last ones") {
  Books books = opened();
  books.create(of("own", 2));
  const CpuSet had = books.cpus_of("own");
  books.set_outside({0, 2, 1, 5});
  CHECK(books.cpus_of("own") == had);  // 1,5
  CHECK(format_list(books.shared_pool()) == "3-4,6-7");
  CHECK(format_list(books.outside()) == "0,2");
  books.create(of("large", 3));
  CHECK_FALSE(books.cpus_of("large").intersects(CpuSet{0, 2}));
  books.set_outside(CpuSet::range(0, 7));
  CHECK(books.shared_pool().size() == 1);
  books.set_outside({});
  CHECK(books.shared_pool().size() == 3);
}

TEST_CASE("CPUs that someone else gave away are shared where no other is left online") {
  Books books = opened();
  books.create(of("free", 0.5));
  books.set_outside({0, 1});
  books.change_machine(without(CpuSet::range(1, 7)));
  CHECK(cpus(books, "free") == "0");
  books.change_machine(machine());
  CHECK(cpus(books, "free") == "2-7");
  CHECK(format_list(books.outside()) == "0-1");
}

TEST_CASE("what happens while nothing can be saved gives no container more CPUs") {
  Books books = opened();
  books.create(of("a", 2));
  REQUIRE(cpus(books, "a") == "1,5");
  books.hold_growth(true);
  books.change_machine(without({5}));
  CHECK(cpus(books, "a") == "1");
  CHECK(problem(books, "a") == Kind::kOffline);
  books.hold_growth(false);
  books.reconcile();
  CHECK(books.cpus_of("a").size() == 2);
  CHECK_FALSE(problem(books, "a"));
}

TEST_CASE("a CPU that goes offline is replaced, and comes back") {
  Books books = opened();
  books.create(of("a", 2));
  CHECK(cpus(books, "a") == "1,5");
  books.change_machine(without({5}));
  CHECK(books.cpus_of("a").size() == 2);
  CHECK_FALSE(books.cpus_of("a").contains(5));
  books.change_machine(without({2, 3, 4, 5, 6, 7}));
  CHECK(cpus(books, "a") == "1");
  CHECK(problem(books, "a") == Kind::kOffline);
  CHECK(format_list(books.shared_pool()) == "0");
  books.change_machine(machine());
  CHECK(books.cpus_of("a").size() == 2);
  CHECK_FALSE(problem(books, "a"));
  // The last CPU is the pool's.
  books.change_machine(without(CpuSet::range(0, 7) - CpuSet{books.cpus_of("a").first()}));
  CHECK(books.exclusive().empty());
  CHECK(books.entries().at("a").problem == Problem{Kind::kOffline, 2, 0});
}

TEST_CASE("only a limit of whole CPUs is one") {
  CHECK(whole_cpus(2 * kPeriod, kPeriod).value() == 2);
  CHECK(whole_cpus(kPeriod + 1, kPeriod).error().kind == Kind::kNotWhole);
  for (const auto& [quota, period] :
       {std::pair(-1, 100), std::pair(0, 100), std::pair(100, 0), std::pair(100, -100)}) {
    CHECK(whole_cpus(quota, period).error().kind == Kind::kNoLimit);
  }
  CHECK(whole_cpus(std::int64_t{1} << 62, 1).value() == kMaxIds);
}

TEST_CASE("rules that no machine, or not this one, can follow are refused") {
  CHECK(wrong({.exclusive = {1}, .reserved = {1}}) == "reserved and exclusive overlap");
  CHECK(wrong({.reserved = {1}, .infra = {1}}) == "infra and reserved overlap");
  CHECK(wrong({.exclusive = {1}, .infra = {1}}) == "infra and exclusive overlap");
  CHECK(wrong({.reserved = {8}}) == "the machine has no CPU 8");
  CHECK(wrong({.infra = CpuSet::range(0, 7)}).starts_with("the shared pool would have 0 CPUs"));
  CHECK(wrong({.min_shared = 9}).starts_with("the shared pool would have 8 CPUs"));
}
