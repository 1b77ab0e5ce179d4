// SPDX-License-Identifier: Apache-2.0
// Messages of `explain` about containers and threads. `away`: a thread is not where the
// plan wants it, so a sentence states the plan, not the actual state.
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "policy/facts/guest.hpp"
#include "policy/facts/sandbox.hpp"
#include "policy/plan/plan.hpp"

namespace ka::messages {

/// The guest's report is older than what is wanted of it.
inline constexpr std::string_view kGuestPending =
    "the last request to the guest is pending, or none was sent: a guest is left alone until the "
    "APIC id of every vCPU is known";

/// "container c1 (app) owns CPUs 2-3 exclusively"
std::string sentence(const policy::ContainerFacts& container);

/// "container c1 runs on guest CPUs 1-2, 5 threads, by cgroup-v2"
std::string sentence(const policy::GuestContainerState& state);

/// "vCPU 1 runs only on CPU 2, for container c1"
std::string dedicated_text(const policy::plan::VcpuPlan& vcpu, bool away);

/// vCPUs that float alike.
struct Floating {
  policy::CpuSet cpus;
  std::string container;
  bool away = false;

  auto operator<=>(const Floating&) const = default;
};

/// "vCPUs 0,3 float on CPUs 0-1"
std::string sentence(const Floating& floating, const policy::VcpuSet& vcpus);

/// Threads of one role that are treated alike.
struct Group {
  policy::Role role = policy::Role::kEmulator;
  policy::CpuSet cpus;
  bool away = false;

  auto operator<=>(const Group&) const = default;
};

/// "3 emulator threads may use CPUs 0-1"
std::string sentence(const Group& group, int number);

}  // namespace ka::messages
