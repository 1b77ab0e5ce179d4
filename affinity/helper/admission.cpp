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

/// CPUs that kubelet has given to nobody. Empty where it gives none to anybody.
Result<CpuSet> shared_pool(const std::filesystem::path& file) {
  if (file.empty()) return CpuSet{};
  const auto text = base::read_regular_file(file, watch::kMaxKubeletState);
  if (is_gone(text)) return CpuSet{};
  const auto state = text ? watch::parse_kubelet_state(*text) : unexpected(text.error());
  if (!state) return unexpected(state.error());
  return state->seen.shared_pool.value_or(CpuSet{});
}

}  // namespace

Result<CpuSet> admit(const policy::Topology& machine, const Limits& limits,
                     const CpuSet& requested) {
  const CpuSet unknown = requested - machine.all();
  if (!unknown.empty()) {
    return base::fail(ErrorCode::kInvalid,
                      "cpus: this machine has no CPU " + policy::format_list(unknown));
  }
  const auto pool = shared_pool(limits.kubelet_state);
  if (!pool) return unexpected(pool.error());
  CpuSet admitted = requested - *pool;
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
