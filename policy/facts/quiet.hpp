// SPDX-License-Identifier: Apache-2.0
// grade = "quiet": what kata-affinity-helper reports of the host.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/facts/id_set.hpp"

namespace ka::policy {

/// The host's units of systemd, and the only kind of which nothing may stay.
inline constexpr std::string_view kQuietUnits = "unit";
/// The only kind whose masks need not be seen: what they lead to is seen in the interrupts.
inline constexpr std::string_view kQuietBalancer = "irqbalance";
/// What is moved off CPUs: the kinds of the helper's answers, in its order.
inline constexpr std::string_view kQuietKinds[] = {
    "new-interrupts", "interrupt",      "workqueue",    "kernel-thread",
    "receive-queue",  "transmit-queue", kQuietBalancer, kQuietUnits};
/// What systemd runs beside kubelet's pods (systemd.special(7)), and the helper limits.
inline constexpr const char* kHostUnits[] = {"system.slice", "user.slice", "init.scope",
                                             "machine.slice"};

/// One thing that may still run on CPUs which the host is kept off.
struct QuietRest {
  std::string name;
  CpuSet cpus;
  std::string why;

  bool operator==(const QuietRest&) const = default;
};

/// All things of one kind.
struct QuietKind {
  std::string kind;             ///< of kQuietKinds
  int found = 0;                ///< how many there are
  int moved = 0;                ///< of these, with a mask that the helper wrote
  std::vector<QuietRest> left;  ///< the first of those that stay
  int left_total = 0;           ///< how many stay
  std::string problem = {};     ///< why they cannot be read or moved; empty: they can

  bool operator==(const QuietKind&) const = default;
};

/// What the host is to be kept off.
struct QuietRequest {
  CpuSet cpus;             ///< with all that can be moved
  CpuSet interrupts = {};  ///< with its interrupts alone

  bool empty() const { return cpus.empty() && interrupts.empty(); }
  bool operator==(const QuietRequest&) const = default;
};

struct QuietState {
  CpuSet cpus;  ///< what the host is kept off
  std::vector<QuietKind> kinds;
  std::string problem;     ///< why nothing can be written; empty: it can
  CpuSet interrupts = {};  ///< what its interrupts are kept off, beside `cpus`

  bool operator==(const QuietState&) const = default;
};

}  // namespace ka::policy
