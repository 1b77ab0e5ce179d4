// SPDX-License-Identifier: Apache-2.0
// The steps that led to a CPU allocation.
#pragma once

#include <string>

#include "policy/allocate/allocate.hpp"

namespace ka::messages {

/// One sentence without a full stop: "removed CPU 0".
std::string sentence(const policy::allocate::Finding& finding,
                     const policy::allocate::Machine& machine);

}  // namespace ka::messages
