// SPDX-License-Identifier: Apache-2.0
// A node's life by kubelet's bookkeeping (policy_static.go, scope_container.go, scope_pod.go),
// with our decisions: hints, merge and CPUs.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "policy/allocate/machine.hpp"
#include "policy/allocate/options.hpp"

namespace ka::test {

/// The "options" of a case.
policy::OptionSet options_of(const boost::json::object& vector);

/// Who holds what after each step of a "seq" case, as text that can be compared.
std::string answer_to_sequence(const policy::Machine& machine, const boost::json::object& vector);
std::string expected_sequence(const boost::json::object& expected);

}  // namespace ka::test
