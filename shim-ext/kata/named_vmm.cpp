// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/kata/named_vmm.hpp"

#include "base/process.hpp"

namespace ka::kata {
namespace {

using base::ErrorCode;
using base::fail;
using std::chrono::nanoseconds;

// Start times count ticks of 10 ms, file times those of the kernel's timer, and the two clocks
// are read one after the other.
constexpr std::chrono::milliseconds kGrain{50};

bool is_child(const vmm::Roots& roots, const std::optional<policy::ProcessId>& shim,
              const policy::ProcessId& vmm) {
  return shim && vmm::vmm_of_shim(roots, *shim) == vmm;
}

/// Both clocks run at the same rate, so the file's age leads from the one to the other, unless the
/// system clock has been set in between. Set forward, the file seems older than it is.
base::Result<void> check_age(const base::Clock& clock, const policy::ProcessId& vmm,
                             const watch::Stamp& written) {
  const nanoseconds at = std::chrono::seconds(written.seconds) + nanoseconds(written.nanoseconds);
  const nanoseconds age = clock.wall().time_since_epoch() - at;
  if (age < -kGrain) {
    return fail(ErrorCode::kConflict, "persist.json is of a time to come: whether process " +
                                          std::to_string(vmm.pid) +
                                          " is the one it names cannot be determined");
  }
  if (base::started_at(vmm.start_time) <= clock.since_boot() - age + kGrain) return {};
  return fail(ErrorCode::kConflict, "process " + std::to_string(vmm.pid) +
                                        " was started after persist.json was written, and is not "
                                        "taken for the VMM that it names");
}

}  // namespace

base::Result<policy::ProcessId> find_named(const vmm::Roots& roots, const base::Clock& clock,
                                           const policy::ledger::Ledger& ledger,
                                           const NamedVmm& named) {
  const auto examined = vmm::examine(roots, named.pid, vmm::Word::kRuntime);
  if (!examined) return unexpected(examined.error());
  const policy::ProcessId& vmm = examined->id;
  if (!examined->is_vmm) {
    return fail(ErrorCode::kGone, "process " + std::to_string(named.pid) + " is not a VMM");
  }
  if (ledger.ended().is_successor(named.sandbox, vmm)) {
    return fail(ErrorCode::kGone, "process " + std::to_string(named.pid) +
                                      " has the number of its VMM, which has ended");
  }
  const policy::ledger::PodRecord* known = ledger.find(named.sandbox);
  const bool is_known = known != nullptr && known->vmm == vmm;
  if (is_known || is_child(roots, named.shim, vmm)) return vmm;
  if (auto good = check_age(clock, vmm, named.written); !good) return unexpected(good.error());
  return vmm;
}

}  // namespace ka::kata
