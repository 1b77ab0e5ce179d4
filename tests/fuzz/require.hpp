// What a fuzz target claims of its subject: a broken claim ends the program, also in a release
// build.
#pragma once

#include <cstdlib>

namespace ka::tests {

inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace ka::tests
