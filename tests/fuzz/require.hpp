// SPDX-License-Identifier: Apache-2.0
// What a fuzz target claims of its subject: a broken claim ends the program, also in a release
// build.
#pragma once

#include <cstdlib>

namespace ka::tests {

inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace ka::tests
