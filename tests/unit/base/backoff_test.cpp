// SPDX-License-Identifier: Apache-2.0
#include "base/backoff.hpp"

#include "tests/catch.hpp"

using namespace std::chrono_literals;

TEST_CASE("delays double up to the maximum, and restart after a success") {
  ka::base::Backoff backoff(100ms, 350ms);
  CHECK(backoff.next() == 100ms);
  CHECK(backoff.next() == 200ms);
  CHECK(backoff.next() == 350ms);
  CHECK(backoff.next() == 350ms);
  backoff.reset();
  CHECK(backoff.next() == 100ms);
}
