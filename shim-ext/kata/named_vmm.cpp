// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/kata/named_vmm.hpp"

#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/process.hpp"
#include "base/text.hpp"

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

/// The sandbox that Kata names in an argument of a VMM: as the name of the VM ("sandbox-ID"), in a
/// path ("/run/vc/vm/ID/..."), or as it is ("--id ID"). A VM of Kata's factory has a name of its
/// own there.
std::string_view name_in(std::string_view argument) {
  constexpr std::string_view kName = "sandbox-", kPath = "/run/vc/vm/";
  if (argument.starts_with(kName)) {
    argument.remove_prefix(kName.size());
    return argument.substr(0, argument.find(','));
  }
  const std::size_t path = argument.find(kPath);
  if (path == std::string_view::npos) return argument;
  argument.remove_prefix(path + kPath.size());
  return argument.substr(0, argument.find('/'));
}

bool is_sandbox(const vmm::Roots& roots, std::string_view name) {
  std::error_code unseen;
  return base::is_id(name) && std::filesystem::is_directory(roots.run / "vc/sbs" / name, unseen);
}

enum class Named { kThis, kOther, kNone };

/// Which sandbox a process is the VMM of by its arguments. The error: they cannot be seen.
base::Result<Named> named_by(const vmm::Roots& roots, const policy::ProcessId& vmm,
                             const std::string& sandbox) {
  const auto arguments = vmm::arguments_of(roots, vmm);
  if (!arguments) return unexpected(arguments.error());
  Named named = Named::kNone;
  for (const std::string& argument : *arguments) {
    const std::string_view name = name_in(argument);
    if (name == sandbox) return Named::kThis;
    if (is_sandbox(roots, name)) named = Named::kOther;
  }
  return named;
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
  const auto by_arguments = named_by(roots, vmm, named.sandbox);
  if (!by_arguments) return unexpected(by_arguments.error());
  if (*by_arguments == Named::kThis) return vmm;
  if (*by_arguments == Named::kOther) {
    return fail(ErrorCode::kConflict, "process " + std::to_string(vmm.pid) +
                                          " is the VMM of another sandbox by its arguments");
  }
  if (auto good = check_age(clock, vmm, named.written); !good) return unexpected(good.error());
  return vmm;
}

}  // namespace ka::kata
