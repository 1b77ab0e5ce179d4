// SPDX-License-Identifier: Apache-2.0
// Threads that have a role only because nothing else is left for them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vmm/facts/facts.hpp"

namespace ka::vmm {

/// Of the VMM's emulator threads and of the helpers, those with a name that neither a known VMM nor
/// the kernel gives, as sentences: each name once, and 8 at most. Threads of the VMM that have its
/// own name, `vmm_comm`, have none.
std::vector<std::string> describe_unknown(const VmmThreads& named, std::string_view vmm_comm);

}  // namespace ka::vmm
