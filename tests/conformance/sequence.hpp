// SPDX-License-Identifier: Apache-2.0
// A node's life as kubelet recorded it (policy_static.go, scope_container.go, scope_pod.go), and in
// our books.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "policy/allocate/machine.hpp"
#include "policy/allocate/options.hpp"

namespace ka::test {

/// The "options" of a case.
policy::allocate::OptionSet options_of(const boost::json::object& vector);

/// What becomes of an init container's CPUs that no other container of its pod takes over.
enum class InitCpus {
  kKept,   ///< theirs until the pod goes, as in kubelet (kubernetes#112228)
  kFreed,  ///< free once the pod's apps begin
};

/// Whether an init container of a "seq" case keeps such CPUs: kubelet's later answers follow from
/// it.
bool leaks(const boost::json::object& vector);

/// Who holds what after each step of a "seq" case, as text that can be compared. With kFreed
/// without the init containers themselves.
std::string answer_to_sequence(const policy::allocate::Machine& machine,
                               const boost::json::object& vector, InitCpus inits);
std::string expected_sequence(const boost::json::object& vector, InitCpus inits);

}  // namespace ka::test
