// SPDX-License-Identifier: Apache-2.0
// Cpusets in user input: the kernel's list format, with errors fit for display.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/text.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::base {

/// kInvalid: `"0-": expected a number (position 2)`; positions count from 0.
template <typename Tag>
Result<policy::IdSet<Tag>> parse_set(std::string_view text) {
  // The kernel's files end in a newline; user input does not.
  if (text.ends_with('\n')) return fail(ErrorCode::kInvalid, "ends in a newline");
  auto set = policy::parse_list<Tag>(text);
  if (set) return std::move(*set);
  return fail(ErrorCode::kInvalid, '"' + printable(text, 200) + "\": " + set.error().reason +
                                       " (position " + std::to_string(set.error().position) + ')');
}

}  // namespace ka::base
