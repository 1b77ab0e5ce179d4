// SPDX-License-Identifier: Apache-2.0
// Other projects' own test tables, read from a directory beside the checkout (not part of it).
#pragma once

#include <boost/json/value.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "policy/allocate/machine.hpp"

namespace ka::test {

/// A file of $KATA_AFFINITY_CONFORMANCE or of the nearest shared/conformance above the sources.
/// Where there is none, prints why the test is skipped.
std::optional<boost::json::object> conformance_vectors(const std::string& file);

/// Calls `use` with each line of a gzip'd file of that directory. False, and the reason printed,
/// where there is no such file.
bool each_line_of(const std::string& file, const std::function<void(const std::string&)>& use);

/// Prints how many cases a file has, and checks that they are no fewer than when it was first read.
void say_count(const std::string& file, std::size_t cases, std::size_t least);

/// The "topologies" of kubelet_cpu_assignment.json.
std::map<std::string, policy::allocate::Machine> machines_of(const boost::json::object& vectors);

}  // namespace ka::test
