// SPDX-License-Identifier: Apache-2.0
// grade = "quiet": what one mask of the host becomes.
#include "policy/plan/host_masks.hpp"

#include "tests/catch.hpp"

using namespace ka::policy;
using namespace ka::policy::plan;

namespace {

const CpuSet kAll = CpuSet::range(0, 7);

HostMaskPlan planned(const CpuSet& theirs, const CpuSet& wanted, bool is_stuck = false) {
  return {theirs, wanted, is_stuck};
}

}  // namespace

TEST_CASE("bits are taken out of a mask, and only those") {
  CHECK(plan_host_mask(kAll, {}, {2, 3}, {}) == planned(kAll, {0, 1, 4, 5, 6, 7}));
  CHECK(plan_host_mask({0, 1}, {}, {2, 3}, {}) == planned({0, 1}, {0, 1}));
  CHECK(plan_host_mask({}, {}, {2, 3}, {4}) == planned({}, {}));
}

TEST_CASE("the last bit stays, or is exchanged where that is allowed") {
  CHECK(plan_host_mask({2}, {}, {2, 3}, {}) == planned({2}, {2}, true));
  CHECK(plan_host_mask({2}, {}, {2, 3}, {0, 1}) == planned({2}, {0, 1}));
}

TEST_CASE("what is ours is judged by what others wrote before it") {
  const HostRecord record{kAll, {{0, 1, 4, 5, 6, 7}}};
  CHECK(plan_host_mask({0, 1, 4, 5, 6, 7}, record, {2}, {}) ==
        planned(kAll, {0, 1, 3, 4, 5, 6, 7}));
  CHECK(plan_host_mask({0, 1, 4, 5, 6, 7}, record, {}, {}) == planned(kAll, kAll));
}

TEST_CASE("what was begun and is not done is as others wrote it") {
  CHECK(plan_host_mask(kAll, HostRecord{kAll, {{0, 1}}}, {2}, {}) ==
        planned(kAll, {0, 1, 3, 4, 5, 6, 7}));
}

TEST_CASE("a mask that others wrote since is theirs, and put back as that") {
  const HostRecord record{kAll, {{0, 1, 4, 5, 6, 7}}};
  CHECK(plan_host_mask({1, 2}, record, {2, 3}, {}) == planned({1, 2}, {1}));
  CHECK(plan_host_mask({1, 2}, record, {}, {}) == planned({1, 2}, {1, 2}));
}
