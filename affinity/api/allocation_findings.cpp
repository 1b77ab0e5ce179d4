// SPDX-License-Identifier: Apache-2.0
#include "affinity/api/allocation_findings.hpp"

#include <string>

#include "affinity/managed/allocations.hpp"

namespace ka::api {

using policy::format_list;
using policy::managed::Entry;
using policy::managed::Problem;

namespace {

std::string sets_text(const managed::AllowedSets& sets) {
  return '"' + format_list(sets.cpus) + "\", memory nodes \"" + format_list(sets.mems) + '"';
}

line::Finding unread_cpuset(const std::string& id, const Entry& entry, const base::Error& error) {
  return {.severity = line::Severity::kUnknown,
          .invariant = "drift",
          .sandbox = entry.about.sandbox,
          .subject = "container " + id,
          .text = managed::title(entry) + ": its cgroup cannot be read: " + error.message,
          .reason = "cpuset-unread"};
}

line::Finding differing(const std::string& id, const Entry& entry,
                        const managed::Manager::Mismatch& found, bool settling) {
  const std::string text = managed::title(entry) + ": its cgroup has CPUs " +
                           sets_text(found.actual) + ", allocated are " + sets_text(found.wanted);
  line::Finding finding{.severity = settling ? line::Severity::kNote : line::Severity::kViolated,
                        .invariant = "drift",
                        .sandbox = entry.about.sandbox,
                        .subject = "container " + id,
                        .wanted = found.wanted.cpus,
                        .actual = found.actual.cpus,
                        .text = settling ? text + "; the runtime may be writing it" : text,
                        .reason = "cpuset-differs"};
  if (!settling) {
    finding.remedy =
        "it is written at the next drift_check; where it differs again, stop the program that "
        "writes it";
  }
  return finding;
}

void collect_cpuset(const managed::Manager& manager, const std::string& id, const Entry& entry,
                    line::VerifyReport& report) {
  const auto found = manager.mismatch(id);
  if (!found) {
    report.findings.push_back(unread_cpuset(id, entry, found.error()));
  } else if (*found) {
    report.findings.push_back(differing(id, entry, **found, manager.is_settling()));
  }
}

/// CPUs that it was given and has lost are a shortcoming; a class that it cannot have was refused.
line::Finding lacking(const std::string& id, const Entry& entry, const policy::CpuSet& cpus) {
  const bool is_lost = entry.problem->kind == Problem::Kind::kOffline;
  return {.severity = is_lost ? line::Severity::kDegraded : line::Severity::kNote,
          .invariant = "classes",
          .sandbox = entry.about.sandbox,
          .subject = "container " + id,
          .wanted = {},
          .actual = cpus,
          .text = managed::title(entry) + ": " + managed::sentence(entry, cpus),
          .reason = "class-" + std::string(policy::managed::problem_name(entry.problem->kind)),
          .remedy = managed::remedy(*entry.problem)};
}

/// It was there before we knew of it, by a lost record or a missed creation, and is to have CPUs
/// of its own.
bool is_owed_cpus(const Entry& entry, const policy::managed::Rules& rules) {
  return entry.adopted && entry.use == policy::managed::CpuUse::kNone &&
         policy::managed::classify(entry.about, rules).use != policy::managed::CpuUse::kNone;
}

line::Finding unknown_before(const std::string& id, const Entry& entry,
                             const policy::CpuSet& cpus) {
  return {.severity = line::Severity::kDegraded,
          .invariant = "classes",
          .sandbox = entry.about.sandbox,
          .subject = "container " + id,
          .wanted = {},
          .actual = cpus,
          .text = managed::title(entry) +
                  ": it ran before its allocation was known (a lost record, or a creation that was "
                  "missed), and runs in the shared pool",
          .reason = "class-adopted",
          .remedy = "kata-affinityctl class " + entry.about.pod_name + '/' + entry.about.name +
                    " exclusive, or restart the pod"};
}

void collect_class(const managed::Manager& manager, const std::string& id, const Entry& entry,
                   line::VerifyReport& report) {
  const policy::CpuSet cpus = manager.books().cpus_of(id);
  if (entry.ended) return;
  if (entry.problem) {
    report.findings.push_back(lacking(id, entry, cpus));
  } else if (is_owed_cpus(entry, manager.books().rules())) {
    report.findings.push_back(unknown_before(id, entry, cpus));
  }
}

line::Finding unsaved(const std::string& reason) {
  return {.severity = line::Severity::kDegraded,
          .invariant = "classes",
          .sandbox = {},
          .subject = "allocations",
          .text =
              "allocations are not on disk, so that no CPUs are given away, and a restart knows "
              "older ones: " +
              reason,
          .reason = "allocations-unsaved"};
}

}  // namespace

void collect_allocations(const managed::Manager& manager, line::VerifyReport& report) {
  for (const auto& [id, entry] : manager.books().entries()) {
    collect_cpuset(manager, id, entry, report);
    collect_class(manager, id, entry, report);
  }
  if (!manager.unsaved().empty()) report.findings.push_back(unsaved(manager.unsaved()));
}

}  // namespace ka::api
