// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/managed/rules.hpp"
#include "shim-ext/nri/allocator.hpp"

namespace ka::managed {

/// A container as the books judge it: with the quality of service that its pod's cgroup names.
policy::managed::Candidate candidate_of(const nri::Described& container);

}  // namespace ka::managed
