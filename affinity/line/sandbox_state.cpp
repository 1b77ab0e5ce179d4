// SPDX-License-Identifier: Apache-2.0
// What a restart must know of a sandbox.
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

}  // namespace ka::line
