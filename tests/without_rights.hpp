// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include "tests/catch.hpp"

namespace ka::tests {

/// What `read` returns to a process that may not read everything. Only root has another user to
/// be.
template <typename Read>
auto without_rights(const Read& read) {
  constexpr uid_t kNobody = 65534;
  const bool is_root = ::geteuid() == 0;
  if (is_root) REQUIRE(::seteuid(kNobody) == 0);
  auto found = read();
  if (is_root) REQUIRE(::seteuid(0) == 0);
  return found;
}

}  // namespace ka::tests
