// SPDX-License-Identifier: Apache-2.0
// Answers as kubelet gives them.
#pragma once

#include "policy/allocate/allocate.hpp"

namespace ka::tests {

/// By the policy that the request's options ask for.
inline auto allocate_by_options(const policy::allocate::Machine& machine,
                                const policy::allocate::CpuRequest& request) {
  return policy::allocate::allocate(machine, request,
                                    policy::allocate::policy_for(request.options));
}

}  // namespace ka::tests
