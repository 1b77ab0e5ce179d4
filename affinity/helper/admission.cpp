// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/admission.hpp"

#include "base/files.hpp"
#include "policy/plan/quiet.hpp"
#include "shim-ext/watch/kubelet_state.hpp"

namespace ka::helper {
namespace {

using base::ErrorCode;
using base::Result;
using policy::CpuSet;

/// CPUs that kubelet has given to nobody: its shared pool, and those that it keeps out of that,
/// too. Empty where it gives none to anybody.
Result<CpuSet> not_given(const std::filesystem::path& file, const CpuSet& online) {
  if (file.empty()) return CpuSet{};
  const auto text = base::read_regular_file(file, watch::kMaxKubeletState);
  if (is_gone(text)) return CpuSet{};
  const auto state = text ? watch::parse_kubelet_state(*text) : unexpected(text.error());
  if (!state) return unexpected(state.error());
  return state->seen.shared_pool.value_or(CpuSet{}) | state->seen.withheld(online);
}

}  // namespace

Result<CpuSet> admit(const policy::Topology& machine, const Limits& limits,
                     const CpuSet& requested) {
  const CpuSet unknown = requested - machine.all();
  if (!unknown.empty()) {
    return base::fail(ErrorCode::kInvalid,
                      "cpus: this machine has no CPU " + policy::format_list(unknown));
  }
  const auto others = not_given(limits.kubelet_state, machine.online());
  if (!others) return unexpected(others.error());
  CpuSet admitted = requested - *others;
  const CpuSet kept = machine.online() - admitted;
  const CpuSet taken = limits.floor & admitted;
  if (!taken.empty()) {
    return base::fail(ErrorCode::kInvalid, "cpus: " + policy::format_list(taken) +
                                               " is kept for the host (quiet_floor)");
  }
  if (!policy::plan::has_core(machine, kept)) {
    return base::fail(ErrorCode::kInvalid, "cpus: the host would have no core left");
  }
  return admitted;
}

}  // namespace ka::helper
