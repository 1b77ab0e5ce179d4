// SPDX-License-Identifier: Apache-2.0
// A pod's state with something of everything.
#pragma once

#include <string>

#include "affinity/state/store.hpp"

namespace ka::tests {

inline constexpr const char* kBoot = "3f1c";

inline state::Saved sample() {
  state::Saved saved;
  saved.pod.id = "s1";
  saved.pod.pod_uid = "uid-1";
  saved.pod.pod_name = "default/db";
  saved.pod.handler = "kata-qemu";
  saved.pod.vmm = policy::ProcessId{4711, 99};
  saved.pod.cgroup = "/kubepods/pod1";
  saved.pod.qmp_socket = "/run/q.sock";
  saved.pod.agent = "vsock:3";
  saved.pod.proxy = policy::ProcessId{4700, 91};
  saved.pod.original_cpus = policy::CpuSet{0, 1, 2, 3};
  policy::ContainerFacts app{"c1", "app", {2, 3}, {0}, true, 200000, 100000, false};
  saved.pod.containers["c1"] = {app, policy::ledger::Source::kNri, true};
  saved.pod.containers["c1"].claims = {{"u1", {2}}, {"u2", {3}}};
  saved.pod.overrides = {{{policy::Role::kVcpu, 1, "", {3}}},
                         {{policy::Role::kIothread, -1, "io", {2}}}};
  saved.pod.overrides[0].uid = 1000;
  saved.pod.overrides[0].pid = 71;
  saved.pod.overrides[0].since = 1'700'000'000;
  saved.pod.overrides[0].until = 4711;
  policy::plan::SandboxPlan plan;
  plan.id = "s1";
  plan.pod_uid = "uid-1";
  plan.mask = {2, 3};
  plan.vcpus = {{0, {2}, policy::plan::VcpuRole::kDedicated, "c1", true}};
  plan.containers = {{"c1", "app", {0}, true}};
  plan.roles[policy::Role::kEmulator] = {3};
  saved.plan = plan;
  saved.originals[4711] = {99, false, {0, 1, 2, 3}};
  saved.released = true;
  saved.cgroup = {"/sys/fs/cgroup/pods/s1", {2, 3}, {0, 1, 2, 3}, {0, 1}};
  saved.interrupts = {{45, "vfio-msix[0](0000:01:00.0)", {0, 1, 2, 3}, {2, 3}}};
  saved.pod.annotations = {{"blockioclass.resource-policy.nri.io/pod", "gold"}};
  saved.pod.requested_grade = policy::GradeRequest::kQuiet;
  saved.classes.nices = {{{4711, 4712, 99}, -3, {-20, 0, 19}}};
  saved.classes.io_weight = {"/sys/fs/cgroup/pods/s1", 100, {1, 10000}};
  saved.classes.io_max = {{"/sys/fs/cgroup/pods/s1",
                           "8:0",
                           "rbps=max wbps=max riops=max wiops=max",
                           {"rbps=1 wbps=max riops=max wiops=2"}}};
  saved.guest.writes = {"vsock://3:1024", true, {{"c1", {1, 2}}}};
  saved.guest.plugged = {.from_boot = true, .groups = {{6, 7}, {5}}, .complete = true};
  saved.ended = policy::ProcessId{4710, 98};
  return saved;
}

}  // namespace ka::tests
