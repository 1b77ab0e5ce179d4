// SPDX-License-Identifier: Apache-2.0
// Values or errors, without exceptions. tl::expected is header-only and becomes std::expected
// when the compilers we support have it.
#pragma once

#include <tl/expected.hpp>

namespace ka {

template <typename T, typename E>
using Expected = tl::expected<T, E>;

template <typename E>
auto unexpected(E&& error) {
  return tl::make_unexpected(std::forward<E>(error));
}

}  // namespace ka
