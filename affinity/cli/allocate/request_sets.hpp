// SPDX-License-Identifier: Apache-2.0
// What `allocate`, `hints` and `simulate` read alike.
#pragma once

#include <string>
#include <vector>

#include "base/sets.hpp"
#include "policy/allocate/options.hpp"

namespace ka::cli {

/// A set given to an option, whose members must be in `known`.
template <typename Tag>
base::Result<policy::IdSet<Tag>> read_set(const std::string& option, const std::string& text,
                                          const policy::IdSet<Tag>& known) {
  auto set = base::parse_set<Tag>(text);
  if (!set) {
    return base::fail(base::ErrorCode::kInvalid, option + ": " + set.error().message);
  }
  const auto strange = *set - known;
  if (strange.empty()) return set;
  return base::fail(base::ErrorCode::kInvalid,
                    option + ": the machine does not have " + policy::format_list(strange));
}

/// Options of kubelet's static policy by name; the error names one that there is not.
base::Result<policy::allocate::OptionSet> read_policy_options(
    const std::vector<std::string>& names);

/// The same with a strategy: "distributed" is an option of kubelet's, which "fitted" contradicts.
base::Result<policy::allocate::OptionSet> read_strategy(const std::string& strategy,
                                                        const std::vector<std::string>& names);

}  // namespace ka::cli
