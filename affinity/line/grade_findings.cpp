// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/grade_findings.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "affinity/host/realtime_limits.hpp"
#include "affinity/line/findings.hpp"
#include "affinity/messages/quiet.hpp"

namespace ka::line {
namespace {

using policy::plan::QuietObstacle;

constexpr const char* kHelperLog = "journalctl -u kata-affinity-helper";

std::string pod_title(const policy::ledger::PodRecord& pod) {
  return "pod " + (pod.pod_name.empty() ? pod.id : pod.pod_name);
}

Finding of_grade(Severity severity, std::string sandbox, std::string text, const char* reason) {
  Finding finding;
  finding.severity = severity;
  finding.invariant = "grade";
  finding.sandbox = std::move(sandbox);
  finding.text = std::move(text);
  finding.reason = reason;
  return finding;
}

void collect_refused(const policy::ledger::PodRecord& pod, const QuietObstacle& refused,
                     VerifyReport& report) {
  Finding finding =
      of_grade(Severity::kNote, pod.vmm ? pod.id : std::string(),
               pod_title(pod) + ": " + messages::obstacle_text(refused), "grade-refused");
  finding.subject = pod_title(pod);
  finding.remedy = messages::remedy_text(refused, pod.id);
  report.findings.push_back(std::move(finding));
}

/// One for each container that owns CPUs.
void collect_not_quiet(const SandboxView& view, const QuietObstacle& obstacle,
                       VerifyReport& report) {
  for (const policy::plan::ContainerIsolation& container : view.isolation) {
    Finding finding = of_grade(
        Severity::kDegraded, view.pod.id,
        "container " + title_of(container) + " is not quiet: " + messages::obstacle_text(obstacle),
        "not-quiet");
    finding.subject = "container " + container.container;
    finding.wanted = container.cpus;
    finding.remedy = messages::remedy_text(obstacle, view.pod.id);
    report.findings.push_back(std::move(finding));
  }
}

void collect_power(const SandboxView& view, VerifyReport& report) {
  if (view.partition == nullptr || view.partition->low_power.empty()) return;
  report.findings.push_back(of_grade(Severity::kNote, view.pod.id,
                                     "its CPUs are not at full power: " + view.partition->low_power,
                                     "low-power"));
}

const char* why_halting(policy::GuestIdle idle) {
  switch (idle) {
    case policy::GuestIdle::kNoDriver:
      return "the guest was booted without cpuidle-haltpoll";
    case policy::GuestIdle::kOtherDriver:
      return "the guest has another cpuidle driver";
    case policy::GuestIdle::kRefused:
      return "the guest's kernel refuses it";
    default:
      return "the guest agent has not enabled it";
  }
}

/// Where the guest has our agent.
void collect_idle(const SandboxView& view, VerifyReport& report) {
  if (view.grade->in_force() != policy::plan::Grade::kRealtime) return;
  if (view.guest == nullptr || !view.guest->current || !view.guest->report) return;
  const policy::GuestIdle idle = view.guest->report->idle;
  if (idle == policy::GuestIdle::kPolling) return;
  report.findings.push_back(
      of_grade(Severity::kNote, view.pod.id,
               std::string("its idle vCPUs halt at once: ") + why_halting(idle), "no-halt-poll"));
}

/// Why interrupts inside the guest may come to its dedicated vCPUs; null: our agent moves them.
const char* why_guest_interrupts(const SandboxView& view) {
  if (view.settings.guest.agent == policy::plan::GuestAgent::kNone) return "guest is \"none\"";
  if (!view.settings.guest.move_interrupts) return "guest_irqs is \"none\"";
  if (view.guest == nullptr) return "no agent responds in it";
  if (view.guest->writes.by_kata) return "kata-agent does not move them";
  return view.guest->connected ? nullptr : "its agent does not respond";
}

void collect_guest_interrupts(const SandboxView& view, VerifyReport& report) {
  const char* why = why_guest_interrupts(view);
  if (why == nullptr) return;
  Finding finding = of_grade(
      Severity::kNote, view.pod.id,
      std::string("interrupts and tasks of its guest's own may run on its dedicated vCPUs: ") + why,
      "guest-not-quiet");
  finding.remedy = view.settings.guest.move_interrupts ? "kata-affinity-agent in the guest image"
                                                       : "guest_irqs = \"floating\"";
  report.findings.push_back(std::move(finding));
}

/// Where there can be no partition a sandbox is quiet without, and never realtime.
void collect_partition(const SandboxView& view, VerifyReport& report) {
  const std::string& not_realtime = view.grade->not_realtime;
  const bool has_none = view.partition != nullptr && !view.partition->problem.empty();
  if (not_realtime.empty() && !has_none) return;
  Finding finding = not_realtime.empty()
                        ? of_grade(Severity::kNote, view.pod.id,
                                   "its vCPUs have no cpuset partition: " + view.partition->problem,
                                   "no-partition")
                        : of_grade(Severity::kDegraded, view.pod.id,
                                   "it is not realtime: " + not_realtime, "not-realtime");
  finding.subject = "vCPUs";
  if (has_none) finding.remedy = view.cgroup_managed ? kHelperLog : "cgroup = \"manage\"";
  report.findings.push_back(std::move(finding));
}

void collect_partition(const PlainPodView& view, const std::string& title, VerifyReport& report) {
  if (view.partition == nullptr || view.partition->problem.empty()) return;
  Finding finding =
      of_grade(Severity::kNote, {}, title + " has no cpuset partition: " + view.partition->problem,
               "no-partition");
  finding.subject = title;
  report.findings.push_back(std::move(finding));
}

std::string share_text(const host::CpuShare& share) {
  return fmt::format("{:.4g} ms of each {:.4g} ms", static_cast<double>(share.time.count()) / 1000,
                     static_cast<double>(share.period.count()) / 1000);
}

}  // namespace

void collect_grade(const SandboxView& view, VerifyReport& report) {
  if (!view.grade) return;
  const SandboxGrade& grade = *view.grade;
  if (grade.refused) collect_refused(view.pod, *grade.refused, report);
  if (grade.is_by_configuration()) return;
  if (grade.obstacle) return collect_not_quiet(view, *grade.obstacle, report);
  collect_partition(view, report);
  collect_power(view, report);
  collect_idle(view, report);
  collect_guest_interrupts(view, report);
}

void collect_realtime_limits(const SandboxView& view, const host::RealtimeLimits& limits,
                             VerifyReport& report) {
  if (!view.grade || view.grade->in_force() != policy::plan::Grade::kRealtime) return;
  if (limits.throttled) {
    report.findings.push_back(of_grade(Severity::kDegraded, view.pod.id,
                                       "the kernel stops its vCPUs for " +
                                           share_text(*limits.throttled) +
                                           " if they never sleep (sched_rt_runtime_us)",
                                       "throttled"));
    report.findings.back().remedy = "sysctl kernel.sched_rt_runtime_us=990000: for 10 ms";
  }
  if (!limits.unseen.empty()) {
    report.findings.push_back(
        of_grade(Severity::kNote, view.pod.id,
                 "it is not known what other tasks get that wait on CPUs " +
                     policy::format_list(limits.unseen) +
                     ": the fair server cannot be read (/sys/kernel/debug/sched)",
                 "fair-server-unknown"));
  }
  if (!limits.nothing.empty()) {
    report.findings.push_back(
        of_grade(Severity::kDegraded, view.pod.id,
                 "other tasks that wait on CPUs " + policy::format_list(limits.nothing) +
                     " get nothing, or are not known to get any (sched_rt_runtime_us, fair server)",
                 "no-limit"));
  }
  if (!limits.fair_server) return;
  report.findings.push_back(of_grade(
      Severity::kNote, view.pod.id,
      "other tasks that wait on its CPUs get " + share_text(*limits.fair_server) + " (fair server)",
      "fair-server"));
}

void collect_grades(const std::vector<PlainPodView>& pods, VerifyReport& report) {
  for (const PlainPodView& view : pods) {
    const SandboxGrade& grade = view.grade;
    if (grade.refused) collect_refused(view.pod, *grade.refused, report);
    if (view.released || grade.is_by_configuration()) continue;
    const std::string title = pod_title(view.pod);
    if (!grade.obstacle) {
      collect_partition(view, title, report);
      continue;
    }
    Finding finding =
        of_grade(Severity::kDegraded, {},
                 title + " is not quiet: " + messages::obstacle_text(*grade.obstacle), "not-quiet");
    finding.subject = title;
    finding.wanted = view.cpus;
    finding.remedy = messages::remedy_text(*grade.obstacle, view.pod.id);
    report.findings.push_back(std::move(finding));
  }
}

}  // namespace ka::line
