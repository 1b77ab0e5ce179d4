// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/holdings.hpp"

#include "tests/catch.hpp"
#include "tests/machines.hpp"

using ka::Expected;
using namespace ka::policy;
using namespace ka::policy::allocate;

namespace {

class Books {
 public:
  explicit Books(CpuSet reserved = {0}, OptionSet options = {})
      : machine_(ka::test::grid_machine({.cores_per_node = 4})),
        holdings_(machine_, std::move(reserved), options) {}

  Holdings& operator*() { return holdings_; }
  Holdings* operator->() { return &holdings_; }
  std::string cpus(const std::string& id) const { return format_list(holdings_.cpus_of(id)); }

 private:
  Machine machine_;
  Holdings holdings_;
};

HoldingRequest exclusive(int cpus) { return {.use = CpuUse::kExclusive, .cpus = cpus}; }
HoldingRequest share(int cpus) { return {.use = CpuUse::kShare, .cpus = cpus}; }

std::string text(const Expected<Moved, Refusal>& moved) {
  if (!moved) return refusal_text(moved.error());
  std::string all;
  for (const std::string& id : *moved) all += id + ' ';
  return all;
}

}  // namespace

TEST_CASE("the shared pool is what no container holds exclusively") {
  Books books;
  CHECK(text(books->add("free", {})) == "free ");
  CHECK(books.cpus("free") == "0-7");
  CHECK(text(books->add("own", exclusive(2))) == "free own ");
  CHECK(books.cpus("own") == "1,5");
  CHECK(books.cpus("free") == "0,2-4,6-7");
  CHECK(text(books->remove("own")) == "free own ");
  CHECK(books.cpus("free") == "0-7");
  CHECK(books.cpus("own") == "");
}

TEST_CASE("strict-cpu-reservation removes reserved CPUs from the pool") {
  Books books({0, 4}, {CpuOption::kStrictCpuReservation});
  CHECK(format_list(books->shared_pool()) == "1-3,5-7");
}

TEST_CASE("sharers are bound to few CPUs, spread out, and make way for exclusive containers") {
  Books books;
  books->add("a", share(2));
  books->add("b", share(2));
  CHECK(books.cpus("a") == "1,5");
  CHECK(books.cpus("b") == "2,6");
  CHECK(text(books->add("own", exclusive(2))) == "own ");
  CHECK(books.cpus("own") == "3,7");
  CHECK(text(books->add("big", exclusive(3))) == "a big ");
  CHECK(books->exclusive().size() == 5);
  for (const std::string id : {"a", "b"}) {
    CHECK(books->cpus_of(id).size() == 2);
    CHECK(books->cpus_of(id).subset_of(books->shared_pool()));
  }
  CHECK(text(books->remove("big")) == "big ");
}

TEST_CASE("sharers return to their size when there is room again") {
  Books books;
  books->add("a", share(4));
  books->add("own", exclusive(6));
  CHECK(books.cpus("a") == format_list(books->shared_pool()));
  books->remove("own");
  CHECK(books->cpus_of("a").size() == 4);
}

TEST_CASE("no container is left without a CPU") {
  Books books(CpuSet{});
  books->add("free", {});
  CHECK(text(books->add("own", exclusive(8))) ==
        "requested=8 would leave no cpu to containers that share");
  CHECK(books->all().size() == 1);
  CHECK(books->exclusive().empty());
  books->remove("free");
  CHECK(text(books->add("own", exclusive(8))) == "own ");
}

TEST_CASE("resizing keeps held and promised CPUs") {
  Books books;
  books->add("own", exclusive(2));
  CHECK(text(books->resize("own", 4)) == "own ");
  CHECK(books->cpus_of("own").size() == 4);
  CHECK(CpuSet{1, 5}.subset_of(books->cpus_of("own")));
  books->resize("own", 2);
  CHECK(books.cpus("own") == "1,5");
  CHECK(text(books->resize("own", 99)) ==
        "not enough cpus available to satisfy request: requested=97, available=5");
  CHECK(books.cpus("own") == "1,5");
  books->resize("own", 1);
  books->resize("own", 2);
  CHECK(books->all().at("own").promised.size() == 1);
}

TEST_CASE("classes change while containers run") {
  Books books;
  books->add("a", exclusive(2));
  books->add("b", share(2));
  CHECK(text(books->change("a", share(2))) == "a ");
  CHECK(books.cpus("a") == "1,5");
  CHECK(books->exclusive().empty());
  CHECK(text(books->change("b", exclusive(2))) == "b ");
  CHECK(books.cpus("b") == "2,6");
  CHECK(text(books->change("a", {})) == "a ");
  CHECK(books.cpus("a") == "0-1,3-5,7");
  CHECK(text(books->resize("a", 3)) == "");
  CHECK(text(books->change("a", exclusive(6))) ==
        "not enough cpus available to satisfy request: requested=6, available=5");
}

TEST_CASE("isolated CPUs go to exclusive containers only") {
  auto layout = ka::test::grid_cpus({.threads = 1});
  layout[3].isolated = true;
  const Machine machine = ka::test::machine_of(layout);
  Holdings books(machine, {}, {});
  const auto wanting = [](CpuUse use) {
    return HoldingRequest{.use = use, .cpus = 1, .prefer_isolated = true};
  };
  REQUIRE(books.add("shares", wanting(CpuUse::kShare)));
  REQUIRE(books.add("owns", wanting(CpuUse::kExclusive)));
  CHECK(books.cpus_of("shares") == CpuSet{0});
  CHECK(books.cpus_of("owns") == CpuSet{3});

  Holdings others(machine, {}, {});
  REQUIRE(others.add("owns", exclusive(1)));
  CHECK(others.cpus_of("owns") == CpuSet{0});
}

TEST_CASE("unknown and repeated names are refused") {
  Books books;
  books->add("a", {});
  CHECK(text(books->add("a", {})) == "exists already");
  CHECK(!books->remove("b"));
  CHECK(text(books->resize("b", 1)) == "no such container");
  CHECK(text(books->change("b", {})) == "no such container");
}
