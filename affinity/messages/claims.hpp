// SPDX-License-Identifier: Apache-2.0
// Claims on CPUs that a container's environment names.
#pragma once

#include <string>

#include "policy/ledger/refused.hpp"

namespace ka::messages {

/// "container app of pod shop/cart names ResourceClaim 5f0c with CPUs 2-3 in its environment, which
/// is not prepared": the first entry that is wrong.
std::string sentence(const policy::ledger::Ledger& ledger,
                     const policy::ledger::RefusedClaims& refused);

}  // namespace ka::messages
