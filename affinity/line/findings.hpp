// SPDX-License-Identifier: Apache-2.0
// The findings of verify.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "affinity/board/views.hpp"
#include "affinity/line/cgroup_keeper.hpp"
#include "affinity/line/report.hpp"
#include "affinity/line/views.hpp"
#include "affinity/registry/state_files.hpp"
#include "policy/ledger/contests.hpp"
#include "policy/ledger/start_gate.hpp"
#include "policy/plan/invariants.hpp"
#include "policy/plan/isolation.hpp"
#include "policy/plan/settings.hpp"

namespace ka::line {

/// "4f21c0 (app)".
std::string title_of(const policy::plan::ContainerIsolation& container);
/// "vCPU 1 (thread 4711)".
std::string thread_title(const policy::ThreadFacts& thread);

/// An invariant that is broken, with the mask of the thread of `threads` that breaks it.
Finding to_finding(const policy::plan::Violation& violation,
                   const std::vector<ThreadView>& threads);

/// Something could not be read.
Finding unread(const std::string& sandbox, const std::string& subject, std::string text);

/// A sandbox, and what makes it be placed as planned.
struct PlacedSandbox {
  std::string id, remedy;
};

/// Threads whose mask differs from the plan. Those of `held_back` are to get CPUs that they may not
/// have yet (collect_start).
void collect_drift(const PlacedSandbox& sandbox, const std::vector<ThreadView>& threads,
                   const std::set<policy::ThreadKey>& held_back, VerifyReport& report);

/// A managed cgroup that is not as planned: new threads are born into it, and an all-ones mask is
/// all of it. `wanted`: Sandbox::cgroup_wanted(). One that cannot be read is unknown; one that
/// cannot be written is named with those of its CPUs that are exclusive to other pods (`foreign`).
void collect_cgroup(const std::string& sandbox, const CgroupKeeper& keeper,
                    const policy::CpuSet& wanted, const policy::CpuSet& foreign,
                    VerifyReport& report);

/// CPUs that are assigned more than once, to containers of any runtime.
void collect_contests(const std::vector<policy::ledger::Contest>& contests, VerifyReport& report);

/// Pods whose VM was refused, and why: they are not placed.
void collect_refused_vmms(const std::map<std::string, std::string>& refused, VerifyReport& report);

/// Threads that the kernel binds, with their CPUs: degraded where some of them are in `foreign`,
/// CPUs that are exclusive to other pods.
void collect_immovable(const std::string& sandbox, const std::vector<ThreadView>& threads,
                       const policy::CpuSet& foreign, VerifyReport& report);

/// Interrupts that go elsewhere than the plan sends them. `held_back`: none is sent anywhere yet.
void collect_interrupts(const PlacedSandbox& sandbox, const std::vector<InterruptView>& interrupts,
                        bool held_back, VerifyReport& report);

/// What resource classes come to: values that differ from the plan's, and classes that containers
/// ask for and do not have.
void collect_classes(const PlacedSandbox& sandbox, const ClassView& classes, VerifyReport& report);
/// vCPUs whose threads do not have their RDT class, as kata-affinity-helper last reported it.
void collect_rdt(const SandboxView& view, VerifyReport& report);

/// The last piece of the chain, as far as a guest is believed. What it does not confirm is an
/// obstacle to its containers' isolation. `guest` may be null.
void collect_guest(const std::string& sandbox, const board::GuestView* guest, VerifyReport& report);

/// An agent that the configuration requires and that does not respond, and one that has not
/// confirmed the last request: findings although no container needs it. `guest` may be null.
void collect_promise(const std::string& sandbox, const policy::plan::Settings& settings,
                     const board::GuestView* guest, VerifyReport& report);

/// Exclusive containers that have less than their CPUs alone.
void collect_isolation(const std::string& sandbox,
                       const std::vector<policy::plan::ContainerIsolation>& containers,
                       VerifyReport& report);

/// Who owns which CPU is not known yet: nothing that is held against it is certain.
void collect_start(const policy::ledger::StartGate& gate, VerifyReport& report);

/// Sandboxes, by id, whose state on disk is not as it is: all is as planned, and a daemon that
/// starts now would know less.
void collect_unsaved(const std::map<std::string, registry::Unsaved>& unsaved, VerifyReport& report);

}  // namespace ka::line
