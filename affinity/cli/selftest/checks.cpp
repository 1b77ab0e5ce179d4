// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <map>
#include <set>

#include "affinity/cli/client/daemon.hpp"

namespace ka::cli::selftest {
namespace {

namespace json = boost::json;
using By = Finding::By;
using Level = Finding::Level;
using policy::CpuSet;
using Threads = std::vector<ThreadSeen>;

constexpr std::size_t kMostNamed = 4;

std::string text(const CpuSet& cpus) { return cpus.empty() ? "none" : policy::format_list(cpus); }

Finding holds(By by, std::string text) { return {by, Level::kHolds, std::move(text)}; }
Finding broken(By by, std::string text) { return {by, Level::kBroken, std::move(text)}; }

/// "VMM 4711 on 0-3, shim 4700 on 5": the first few.
std::string names_of(const Threads& threads) {
  std::vector<std::string> names;
  for (const ThreadSeen& one : threads) {
    if (names.size() == kMostNamed) break;
    names.push_back(fmt::format("{} {} on {}", one.part, one.tid, text(one.cpus)));
  }
  if (threads.size() > kMostNamed) {
    names.push_back(fmt::format("{} more", threads.size() - kMostNamed));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

template <typename Predicate>
Threads those(const Threads& threads, Predicate matches) {
  Threads found;
  std::ranges::copy_if(threads, std::back_inserter(found), matches);
  return found;
}

bool is_vcpu(const ThreadSeen& thread) { return thread.part == "vCPU"; }

/// Whether a vCPU runs on one CPU, and this is one of `own`.
bool is_dedicated(const ThreadSeen& thread, const CpuSet& own) {
  return is_vcpu(thread) && thread.cpus.size() == 1 && thread.cpus.subset_of(own);
}

/// Of `own`, the CPUs with a vCPU that runs on that CPU only.
CpuSet dedicated_cpus(const Threads& threads, const CpuSet& own) {
  CpuSet cpus;
  for (const ThreadSeen& one : threads) {
    if (is_dedicated(one, own)) cpus |= one.cpus;
  }
  return cpus;
}

Finding check_bounds(const Threads& threads, const CpuSet& own, const CpuSet& pool) {
  const CpuSet allowed = own | pool;
  const Threads astray =
      those(threads, [&](const ThreadSeen& one) { return !one.cpus.subset_of(allowed); });
  if (!astray.empty()) {
    return broken(By::kKernel, fmt::format("may run outside the pod's CPUs {} and the shared pool "
                                           "{}: {}",
                                           text(own), text(pool), names_of(astray)));
  }
  return holds(By::kKernel,
               fmt::format("all {} threads of the VM are confined to the pod's CPUs {} and the "
                           "shared pool {}",
                           threads.size(), text(own), text(pool)));
}

Finding check_dedication(const Threads& threads, const CpuSet& own) {
  const CpuSet missing = own - dedicated_cpus(threads, own);
  if (missing.empty()) {
    return holds(By::kKernel, fmt::format("each of CPUs {} has a vCPU bound to it", text(own)));
  }
  return broken(By::kKernel, fmt::format("no vCPU is bound to CPU {}; the VM's vCPUs: {}",
                                         text(missing), names_of(those(threads, is_vcpu))));
}

bool shares(const ThreadSeen& thread, const CpuSet& own) {
  return thread.cpus.intersects(own) && !is_dedicated(thread, own);
}

Threads sharers(const Threads& threads, const CpuSet& own) {
  return those(threads, [&own](const ThreadSeen& one) { return shares(one, own); });
}

Finding check_isolation(const Threads& threads, const CpuSet& own) {
  const Threads found = sharers(threads, own);
  if (found.empty()) {
    return holds(By::kKernel,
                 fmt::format("no other thread of the VM may run on CPUs {}", text(own)));
  }
  return {By::kKernel, Level::kDegraded,
          fmt::format("not isolated: {} other threads of the VM may run on CPUs {}: {}",
                      found.size(), text(own), names_of(found))};
}

bool is_container(const ThreadSeen& thread) { return thread.part.starts_with("container "); }

/// kubelet narrows every container; a runtime without it narrows none.
bool may_roam(const Threads& threads, const Subject& subject) {
  return subject.by == By::kRuntime && std::ranges::all_of(threads, is_container);
}

Finding check_others(const Threads& others, const CpuSet& own, const Subject& subject) {
  const Threads found =
      those(others, [&own](const ThreadSeen& one) { return one.cpus.intersects(own); });
  if (found.empty()) {
    return holds(By::kKernel, fmt::format("none of {} threads of other pods may run on CPUs {}",
                                          others.size(), text(own)));
  }
  if (may_roam(found, subject)) {
    return {By::kKernel, Level::kDegraded,
            fmt::format("only kubelet would keep containers of other pods off CPUs {}: {}",
                        text(own), names_of(found))};
  }
  return broken(By::kKernel, fmt::format("threads of other pods may run on CPUs {}: {}", text(own),
                                         names_of(found)));
}

const json::value* find_sandbox(const json::value& list, const std::string& uid) {
  for (const json::value& one : array_of(list, "sandboxes")) {
    if (text_of(one, "pod_uid") == uid) return &one;
  }
  return nullptr;
}

/// Where an assignment is written down.
std::string record_of(By by) {
  return by == By::kRuntime ? "the containers' specs" : "kubelet's state";
}

Finding compare(const std::string& what, const std::string& said, const CpuSet& assigned, By by) {
  const std::string wanted = policy::format_list(assigned);
  if (said == wanted) {
    return holds(By::kDaemon, fmt::format("{} {}, as in {}", what, said, record_of(by)));
  }
  return broken(By::kDaemon, fmt::format("{} {}; by {}: {}", what, said, record_of(by), wanted));
}

/// A thread that came after the daemon's answer is none that it got wrong.
Finding compare_masks(const json::value& sandbox, const Threads& threads) {
  std::map<long long, std::string> said;
  for (const json::value& one : array_of(sandbox, "threads")) {
    said[number_of(one, "tid")] = text_of(one, "actual");
  }
  const Threads differing = those(threads, [&said](const ThreadSeen& one) {
    const auto found = said.find(one.tid);
    return found == said.end() || found->second != policy::format_list(one.cpus);
  });
  if (!differing.empty()) {
    return broken(By::kDaemon,
                  "status has no mask, or not the kernel's, for " + names_of(differing));
  }
  return holds(By::kDaemon,
               fmt::format("status has the kernel's mask for all {} threads", threads.size()));
}

Finding compare_dedication(const json::value& sandbox, const CpuSet& seen) {
  CpuSet said;
  for (const json::value& one : array_of(sandbox, "vcpus")) {
    if (text_of(one, "role") != "dedicated") continue;
    said |= policy::parse_list<policy::CpuTag>(text_of(one, "cpus")).value_or(CpuSet{});
  }
  if (said == seen) {
    return holds(By::kDaemon, fmt::format("vCPUs are dedicated to CPUs {}", text(said)));
  }
  return broken(By::kDaemon,
                fmt::format("vCPUs are dedicated to CPUs {}; the kernel has vCPUs bound to {}",
                            text(said), text(seen)));
}

/// The obstacles that the daemon reports for its exclusive containers.
std::string obstacles_of(const json::value& sandbox) {
  std::set<std::string> reasons;
  for (const json::value& container : array_of(sandbox, "containers")) {
    for (const json::value& one : array_of(container, "obstacles")) {
      reasons.insert(text_of(one, "reason"));
    }
  }
  return fmt::format("{}", fmt::join(reasons, ", "));
}

bool says_isolated(const json::value& sandbox) {
  const auto& containers = array_of(sandbox, "containers");
  return std::ranges::all_of(containers, [](const json::value& one) {
    return !flag_of(one, "exclusive") || flag_of(one, "isolated");
  });
}

Finding compare_isolation(const json::value& sandbox, bool shared) {
  if (!says_isolated(sandbox)) {
    return {By::kDaemon, Level::kDegraded,
            "the container is not isolated: " + obstacles_of(sandbox)};
  }
  if (shared) {
    return broken(
        By::kDaemon,
        "the container is isolated; but the kernel allows other threads of the VM on its CPUs");
  }
  return holds(By::kDaemon, "the container is isolated");
}

Finding repeat_verdict(const json::value& report) {
  for (const json::value& one : array_of(report, "findings")) {
    const std::string severity = text_of(one, "severity");
    if (severity != "violated" && severity != "unknown") continue;
    return broken(By::kDaemon,
                  fmt::format("verify: {}: {} {}: {}", severity, text_of(one, "invariant"),
                              text_of(one, "sandbox"), text_of(one, "text")));
  }
  const std::string verdict = text_of(report, "verdict");
  return {By::kDaemon, verdict == "degraded" ? Level::kDegraded : Level::kHolds,
          "verify: " + verdict};
}

}  // namespace

Findings check_assignment(const Assignments& assignments, const Subject& subject) {
  const CpuSet own = assignments.of_pod(subject.uid);
  if (own.size() != subject.cpus) {
    return {broken(subject.by, fmt::format("the pod has {} CPUs by {}; it requested {}", own.size(),
                                           record_of(subject.by), subject.cpus))};
  }
  return {holds(subject.by, fmt::format("the pod has CPUs {} by {}; the shared pool is {}",
                                        text(own), record_of(subject.by), text(assignments.pool)))};
}

Findings check_start(const Reading& reading) {
  if (reading.sandbox.empty()) return {broken(By::kKernel, "containerd has no task for the pod")};
  const auto vcpus = std::ranges::count_if(reading.own, is_vcpu);
  if (vcpus == 0) return {broken(By::kKernel, "KVM has no vCPU for the pod's VM")};
  if (reading.containers.empty()) {
    return {broken(By::kKernel, "containerd has no task for the pod's container")};
  }
  return {holds(By::kKernel,
                fmt::format("the pod's VM has {} vCPUs, {} threads", vcpus, reading.own.size()))};
}

Findings check_masks(const Assignments& assignments, const Subject& subject,
                     const Reading& reading) {
  const CpuSet own = assignments.of_pod(subject.uid);
  Findings findings = check_start(reading);
  if (!all_hold(findings)) return findings;
  findings.push_back(check_bounds(reading.own, own, assignments.pool));
  findings.push_back(check_dedication(reading.own, own));
  findings.push_back(check_isolation(reading.own, own));
  findings.push_back(check_others(reading.others, own, subject));
  if (reading.unread > 0) {
    findings.push_back(
        broken(By::kKernel,
               fmt::format("{} processes or threads of pods could not be read", reading.unread)));
  }
  return findings;
}

Findings check_discovery(const Subject& subject, const json::value& sandboxes) {
  const json::value* sandbox = find_sandbox(sandboxes, subject.uid);
  if (sandbox == nullptr) return {broken(By::kDaemon, "does not report the pod")};
  return {holds(By::kDaemon, fmt::format("reports the pod as sandbox {}, source {}",
                                         text_of(*sandbox, "id"), text_of(*sandbox, "source")))};
}

Findings check_report(const Assignments& assignments, const Subject& subject,
                      const Reading& reading, const DaemonWord& word) {
  Findings findings = check_discovery(subject, word.sandboxes);
  findings.push_back(
      compare("exclusive CPUs", text_of(word.node, "exclusive"), assignments.all(), subject.by));
  findings.push_back(
      compare("shared pool", text_of(word.node, "shared_pool"), assignments.pool, subject.by));
  const json::value* sandbox = find_sandbox(word.sandboxes, subject.uid);
  if (sandbox == nullptr) return findings;
  const CpuSet own = assignments.of_pod(subject.uid);
  findings.push_back(compare_masks(*sandbox, reading.own));
  findings.push_back(compare_dedication(*sandbox, dedicated_cpus(reading.own, own)));
  findings.push_back(compare_isolation(*sandbox, !sharers(reading.own, own).empty()));
  findings.push_back(repeat_verdict(word.report));
  return findings;
}

}  // namespace ka::cli::selftest
