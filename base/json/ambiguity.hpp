// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ka::base {

struct Ambiguity {
  std::string text;     ///< what it is: "\"cpus\" is a duplicate key"
  std::size_t end = 0;  ///< offset of its last character
};

/// The first thing in a good JSON document that readers take differently, as RFC 8259 leaves it
/// open: a key twice in an object, or a number beyond a double's range, which Boost.JSON reads as
/// infinite and then writes as no JSON.
std::optional<Ambiguity> find_ambiguity(std::string_view json);

}  // namespace ka::base
