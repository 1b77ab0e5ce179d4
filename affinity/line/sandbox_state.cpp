// SPDX-License-Identifier: Apache-2.0
// What a restart must know of a sandbox, what was reported of it, and what the kernel refused.
#include "affinity/line/sandbox.hpp"

namespace ka::line {

state::Saved Sandbox::saved(const policy::ledger::PodRecord& pod) const {
  return {.pod = pod,
          .plan = plan_,
          .originals = masks_.originals(),
          .released = released_,
          .left_alone = left_alone_,
          .cgroup = keeper_.saved(),
          .interrupts = interrupts_.saved(),
          .classes = classes_.saved(),
          .guest = {}};
}

void Sandbox::restore(const state::Saved& saved) {
  plan_ = saved.plan;
  masks_.restore(saved.originals);
  released_ = saved.released;
  left_alone_ = saved.left_alone;
  if (!saved.left_alone) masks_.set_placed();
  interrupts_.restore(saved.interrupts);
  classes_.restore(saved.classes);
  if (saved.cgroup) keeper_.restore(*saved.cgroup);
}

/// Processes that come and go there are no reason to fill the log.
std::vector<std::string> Sandbox::new_foreign() {
  constexpr std::size_t kMostReported = 16;
  if (seen_.foreign.empty()) reported_foreign_.clear();
  std::vector<std::string> fresh;
  for (const std::string& one : seen_.foreign) {
    if (reported_foreign_.size() == kMostReported) break;
    if (reported_foreign_.insert(one).second) fresh.push_back(one);
  }
  return fresh;
}

void Sandbox::retry_refused() {
  masks_.retry_refused();
  interrupts_.retry_refused();
  classes_.retry_refused();
  keeper_.retry_refused();
}

}  // namespace ka::line
