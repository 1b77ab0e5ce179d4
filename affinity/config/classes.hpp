// SPDX-License-Identifier: Apache-2.0
// The tables [affinity.classes.NAME]: resource classes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/config/entries.hpp"
#include "policy/plan/resource_classes.hpp"

namespace ka::config {

/// A key of a class. Its row is all that there is of it, as with kKeys.
struct ClassKey {
  std::string_view name;
  int lowest, highest;
  std::optional<int> policy::plan::ResourceClass::* member;
  std::string_view doc;  ///< one sentence
};

inline constexpr ClassKey kClassKeys[] = {
    {"nice", -20, 19, &policy::plan::ResourceClass::nice,
     "Nice value of the threads of the container's vCPUs."},
    {"io_weight", 1, 10000, &policy::plan::ResourceClass::io_weight,
     "io.weight of the sandbox's cgroup; 100 is the kernel's default."},
};

/// Whether a path below [affinity] stands in a class, or should.
bool is_of_class(const std::vector<std::string>& path);

/// What is wrong with an entry of a class; empty: nothing. `at_value`: it is the value.
struct ClassError {
  std::string what;
  bool at_value = false;
};
ClassError check_class(const std::vector<std::string>& path, const Value& value);

/// Precondition: the entries were checked.
policy::plan::ResourceClasses make_classes(const Entries& entries);

}  // namespace ka::config
