// SPDX-License-Identifier: Apache-2.0
// Properties, checked by rapidcheck within Catch test cases. (rapidcheck's own header for Catch
// knows version 2 only.)
#pragma once

#include <rapidcheck.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "tests/catch.hpp"

namespace property {

/// Checks a property on a hundred random cases. The same cases every time, unless the environment
/// says otherwise: RC_PARAMS="" for others, "max_success=10000" for more, "seed=N" for those that
/// failed with that seed. rapidcheck prints the seed and, of a failure, the smallest case.
template <typename Testable>
void holds(const std::string& description, Testable&& testable) {
  static const int kDefaultsSet = setenv("RC_PARAMS", "seed=20240607", /*overwrite=*/0);
  CHECK(kDefaultsSet == 0);
  CHECK(rc::check(description, std::forward<Testable>(testable)));
}

}  // namespace property
