// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/diff.hpp"

#include "tests/catch.hpp"

using namespace ka::policy;
using namespace ka::policy::plan;

namespace {

ThreadPlacement placement(int tid, CpuSet wanted, CpuSet actual, CpuSet allowed = {}) {
  return {{1, tid, 7}, std::move(wanted), std::move(actual), std::move(allowed)};
}

}  // namespace

TEST_CASE("threads in place, or left alone, are not written") {
  CHECK(diff({placement(1, {2}, {2}), placement(2, {}, {3})}).empty());
}

TEST_CASE("narrowing comes first, moving next, widening last") {
  const auto writes = diff({placement(1, {1, 2}, {1}), placement(2, {5}, {6}),
                            placement(3, {1}, {1, 2}), placement(4, {3, 4}, {4, 5})});
  REQUIRE(writes.size() == 4);
  CHECK(writes[0].key.tid == 3);
  CHECK(writes[0].kind == Write::Kind::kNarrow);
  CHECK(writes[1].key.tid == 2);
  CHECK(writes[2].key.tid == 4);
  CHECK(writes[2].kind == Write::Kind::kMove);
  CHECK(writes[3].key.tid == 1);
  CHECK(writes[3].kind == Write::Kind::kWiden);
}

TEST_CASE("threads on CPUs of another pod leave first") {
  auto trespasser = placement(2, {5}, {6});
  trespasser.trespassing = true;
  const auto writes = diff({placement(1, {1}, {1, 2}), trespasser});
  REQUIRE(writes.size() == 2);
  CHECK(writes[0].key.tid == 2);
}

TEST_CASE("a thread that may use its whole cgroup is made to follow it") {
  const auto writes =
      diff({placement(1, {1, 2}, {1}, {1, 2}), placement(2, {1, 2}, {1}, {1, 2, 3})});
  REQUIRE(writes.size() == 2);
  CHECK(writes[0].everywhere);
  CHECK_FALSE(writes[1].everywhere);
}

TEST_CASE("a freed thread is written also where its mask seems to be all of its cgroup") {
  auto freed = placement(1, {1, 2}, {1, 2}, {1, 2});
  freed.freed = true;
  auto explicit_mask = placement(2, {1}, {1}, {1, 2});
  explicit_mask.freed = true;
  const auto writes = diff({freed, explicit_mask, placement(3, {1, 2}, {1, 2}, {1, 2})});
  REQUIRE(writes.size() == 1);
  CHECK(writes[0].key.tid == 1);
  CHECK(writes[0].everywhere);
  CHECK(diff(shrunk({freed})).empty());
}

TEST_CASE("a freed thread gets all of its mask, of which its cgroup allows a part for now") {
  const CpuSet whole{0, 1, 2};
  auto cut = placement(1, {1, 2}, {1, 2}, {1, 2, 3});
  auto all_of_its_cgroup = placement(2, {1, 2}, {1}, {1, 2});
  auto kept = placement(3, {1}, {1, 3}, {1, 2, 3});  // not all that it may have
  auto uncut = placement(4, {0, 1, 2}, {0, 1, 2}, {0, 1, 2, 3});
  auto nowhere = placement(5, {3}, {3}, {3});
  for (ThreadPlacement* one : {&cut, &all_of_its_cgroup, &kept, &uncut, &nowhere}) {
    one->freed = true;
    one->whole = whole;
  }
  const auto writes = diff({cut, all_of_its_cgroup, kept, uncut, nowhere});
  REQUIRE(writes.size() == 4);
  for (const Write& write : writes) {
    CAPTURE(write.key.tid);
    const bool is_cut = write.key.tid <= 2;
    CHECK(write.mask() == (is_cut ? whole : write.cpus));
    CHECK(write.everywhere == (write.key.tid == 5));
  }
  CHECK(diff(shrunk({cut, uncut, nowhere})).empty());
}

TEST_CASE("shrunk placements only remove CPUs") {
  auto trespasser = placement(1, {5}, {6});
  trespasser.trespassing = true;
  const auto writes = diff(shrunk({trespasser, placement(2, {1, 2}, {1}, {1, 2}),
                                   placement(3, {1, 4}, {1, 2}), placement(4, {1}, {1, 2}, {1})}));
  REQUIRE(writes.size() == 2);
  CHECK(writes[0].key.tid == 3);
  CHECK(writes[0].cpus == CpuSet{1});
  CHECK(writes[1].key.tid == 4);
  CHECK_FALSE(writes[1].everywhere);
}

TEST_CASE("nothing gets CPUs whose owner is in doubt, and what has them keeps them") {
  CHECK(without_doubted({0, 1, 2}, {0}, {}) == CpuSet{0, 1, 2});
  CHECK(without_doubted({0, 1, 2}, {0}, {1}) == CpuSet{0, 2});
  CHECK(without_doubted({0, 1, 2}, {1}, {1, 2}) == CpuSet{0, 1});
  CHECK(without_doubted({0}, {0, 1}, {1}) == CpuSet{0});
  CHECK(without_doubted({1, 2}, {0}, {1, 2}) == CpuSet{1, 2});  // nowhere else is it wanted
}
