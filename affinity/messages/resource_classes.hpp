// SPDX-License-Identifier: Apache-2.0
// Messages about resource classes.
#pragma once

#include <string>

#include "policy/plan/resource_classes.hpp"

namespace ka::messages {

/// "allow_annotations does not list scheduling-class". Precondition: it is refused.
std::string refusal_text(const policy::plan::RequestedClass& request);

}  // namespace ka::messages
