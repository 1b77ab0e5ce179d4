// SPDX-License-Identifier: Apache-2.0
// What another program changed, and by what: for the operator who looks for that program.
#pragma once

#include <string>
#include <vector>

#include "affinity/line/masks.hpp"
#include "affinity/line/node.hpp"
#include "affinity/line/sandbox.hpp"

namespace ka::line {

/// How threads left their CPUs.
enum class Means {
  kAffinity,  ///< sched_setaffinity(2); the kernel does not record by whom
  kCpuset,    ///< a write to the cpuset of their cgroup
};

/// "affinity", "cpuset": the reason of the notification.
std::string means_name(Means means);

/// `written`: the kernel reported a write to the sandbox's cgroup. Otherwise its cpuset is compared
/// with what it was when it was last observed.
Means means_of(const Node& node, const Sandbox& sandbox, bool written);

/// "1 thread had left its planned CPUs: vCPU 1 from CPU 4 to CPUs 0-7; by sched_setaffinity(2) of
/// another program; known to do that: numad (pid 812)". Programs are looked for where a mask was
/// set only: that takes a look at each process of the node, and cpusets are written by Kata again
/// and again. A domain's threads may as well have been moved by libvirtd, which carries out late
/// what it has accepted. Precondition: not empty.
std::string drift_text(const Node& node, const Sandbox& sandbox,
                       const std::vector<ChangedMask>& changed, Means means);
/// The same of interrupts.
std::string interrupt_drift_text(const Node& node, int count);
/// "another program changed 2 values of resource classes"
std::string class_drift_text(int count);

}  // namespace ka::line
