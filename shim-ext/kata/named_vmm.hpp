// SPDX-License-Identifier: Apache-2.0
// The process that a sandbox's persist.json means. Kata writes a number there, and leaves it when
// the VMM has ended: whoever has the number now may be another process.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "policy/ledger/ledger.hpp"
#include "shim-ext/watch/stamp.hpp"
#include "vmm/threads.hpp"

namespace ka::kata {

struct NamedVmm {
  std::string sandbox;
  int pid = 0;
  watch::Stamp written;                   ///< of the file
  std::optional<policy::ProcessId> shim;  ///< of the sandbox; absent: it is not known
};

/// The VMM that has the number, where it is the one that Kata wrote there: it is known to be, by
/// its start time; or it is a child of the sandbox's shim; or its arguments name the sandbox; or
/// they name none, and it was there when the file was written. kGone: there is no VMM of that
/// number, or the sandbox's has ended. kConflict: none of that is so, or the system clock has been
/// set back since and nobody can tell. Any other error: that cannot be seen.
base::Result<policy::ProcessId> find_named(const vmm::Roots& roots, const base::Clock& clock,
                                           const policy::ledger::Ledger& ledger,
                                           const NamedVmm& named);

}  // namespace ka::kata
