// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/findings.hpp"

#include <algorithm>
#include <utility>

#include "affinity/line/rdt.hpp"
#include "affinity/messages/contests.hpp"
#include "affinity/messages/events.hpp"
#include "affinity/messages/isolation.hpp"
#include "affinity/messages/placement.hpp"
#include "affinity/messages/resource_classes.hpp"
#include "affinity/messages/terms.hpp"
#include "affinity/messages/violations.hpp"
#include "affinity/registry/registry.hpp"
#include "policy/plan/cgroup.hpp"
#include "policy/plan/guest.hpp"

namespace ka::line {
namespace {

std::string name_of(const policy::ThreadFacts& thread) {
  std::string name(policy::role_term(thread.role));
  if (thread.role == policy::Role::kVcpu) name += ' ' + std::to_string(thread.vcpu_index);
  if (thread.role == policy::Role::kIothread) name += ' ' + thread.name;
  return name;
}

/// " (thread 4711)"; nothing for what is no thread.
std::string thread_text(int tid) {
  return tid == 0 ? std::string() : " (thread " + std::to_string(tid) + ')';
}

/// The mask of the thread that is meant, or of one that has its name.
policy::CpuSet actual_of(const std::vector<ThreadView>& threads,
                         const policy::plan::Violation& violation) {
  const auto named = std::ranges::find_if(threads, [&](const ThreadView& thread) {
    return violation.tid != 0 ? thread.facts.key.tid == violation.tid
                              : name_of(thread.facts) == violation.subject;
  });
  return named == threads.end() ? policy::CpuSet{} : named->actual;
}

/// A thread or an interrupt that is not where it is wanted.
struct OffPlan {
  std::string name, verb;
  const policy::CpuSet& actual;
  const policy::CpuSet& wanted;
  bool held_back = false;  ///< it is to get CPUs that nothing gets before the start is complete
};

Finding off_plan(const PlacedSandbox& sandbox, const OffPlan& found) {
  const auto& [name, verb, actual, wanted, held_back] = found;
  const std::string text = name + ' ' + verb + ' ' + policy::format_list(actual) + ", wanted " +
                           policy::format_list(wanted);
  if (held_back) {
    return {Severity::kNote,
            "start",
            sandbox.id,
            name,
            wanted,
            actual,
            text + ", once the start is complete",
            "held-back",
            {}};
  }
  return {Severity::kViolated, "drift", sandbox.id, name, wanted, actual, text, "drift",
          sandbox.remedy};
}

bool is_of_guest(policy::plan::Obstacle obstacle) {
  return obstacle == policy::plan::Obstacle::kGuestSilent ||
         obstacle == policy::plan::Obstacle::kGuestUnconfirmed;
}

Finding to_finding(const std::string& sandbox, const policy::plan::ContainerIsolation& container,
                   const policy::plan::NotIsolated& obstacle) {
  return {
      Severity::kDegraded,
      is_of_guest(obstacle.obstacle) ? "guest" : "isolation",
      sandbox,
      "container " + container.container,
      container.cpus,
      obstacle.cpus,
      "container " + title_of(container) + " is not isolated: " + messages::obstacle_text(obstacle),
      std::string(policy::plan::obstacle_name(obstacle.obstacle)),
      messages::remedy_text(obstacle, sandbox)};
}

std::string value_of_class(int value) { return std::to_string(value); }
std::string value_of_class(const std::string& limits) { return limits; }

/// A value that cannot be written is named as a shortcoming, one that differs without a reason as a
/// breach. Of one that cannot be read neither is known.
template <typename View>
void collect_value(const PlacedSandbox& sandbox, const View& view, VerifyReport& report) {
  if (!view.drifted()) return;
  if (!view.unread.empty()) {
    report.findings.push_back(
        unread(sandbox.id, view.name(), view.name() + " cannot be read: " + view.unread));
    return;
  }
  const std::string now = view.actual ? value_of_class(*view.actual) : "unknown";
  report.findings.push_back(
      {.severity = view.problem.empty() ? Severity::kViolated : Severity::kDegraded,
       .invariant = "classes",
       .sandbox = sandbox.id,
       .subject = view.name(),
       .wanted = {},
       .actual = {},
       .text = view.name() + " is " + now + (view.problem.empty() ? "" : ": " + view.problem),
       .reason = view.problem.empty() ? "drift" : "class-unset",
       .remedy = sandbox.remedy});
}

/// The sandbox is planned within what its cgroup has: a plan alone shows no difference.
void collect_unwritten_cgroup(const std::string& sandbox, const CgroupKeeper& keeper,
                              const policy::CpuSet& foreign, VerifyReport& report) {
  const policy::CpuSet actual = keeper.cpuset().effective();
  const policy::CpuSet touched = actual & foreign;
  const std::string deed = keeper.is_unreturned() ? "restored" : "written";
  std::string text =
      "its cgroup cannot be " + deed + " and has CPUs " + policy::format_list(actual);
  if (!touched.empty()) {
    text += ", of which " + policy::format_list(touched) + " belong to another pod";
  }
  report.findings.push_back(
      {.severity = Severity::kDegraded,
       .invariant = "drift",
       .sandbox = sandbox,
       .subject = "cgroup",
       .wanted = {},
       .actual = actual,
       .text = text + ": " + keeper.problem(),
       .reason = "cgroup",
       .remedy = "give kata-affinityd write access to cgroups, or set cgroup = \"obey\""});
}

/// Lost state is overridden by an operator, but only when the sources have had their time.
std::string remedy_of_start(const policy::ledger::StartGate& gate) {
  if (gate.phase() == policy::ledger::StartGate::Phase::kBlind) return "kata-affinityctl reconcile";
  return "wait until " + std::to_string(registry::kStartLimit.count()) +
         " s after the daemon's start, or bring up " + messages::names_of(gate.silent());
}

}  // namespace

std::string title_of(const policy::plan::ContainerIsolation& container) {
  return container.container + (container.name.empty() ? "" : " (" + container.name + ')');
}

std::string thread_title(const policy::ThreadFacts& thread) {
  return name_of(thread) + thread_text(thread.key.tid);
}

Finding to_finding(const policy::plan::Violation& violation,
                   const std::vector<ThreadView>& threads) {
  return {Severity::kViolated,
          "I" + std::to_string(policy::plan::invariant_of(violation.breach)),
          violation.sandbox,
          violation.subject,
          {},
          actual_of(threads, violation),
          violation.subject + thread_text(violation.tid) + ' ' +
              messages::sentence(violation.breach) + ": " + policy::format_list(violation.cpus),
          std::string(policy::plan::breach_name(violation.breach)),
          {}};
}

Finding unread(const std::string& sandbox, const std::string& subject, std::string text) {
  return {Severity::kUnknown, "unread", sandbox, subject, {}, {}, std::move(text), "unread", {}};
}

void collect_drift(const PlacedSandbox& sandbox, const std::vector<ThreadView>& threads,
                   const std::set<policy::ThreadKey>& held_back, VerifyReport& report) {
  for (const ThreadView& thread : threads) {
    if (!thread.drifted()) continue;
    report.findings.push_back(
        off_plan(sandbox, {thread_title(thread.facts), "has", thread.actual, thread.wanted,
                           held_back.contains(thread.facts.key)}));
  }
}

void collect_cgroup(const std::string& sandbox, const CgroupKeeper& keeper,
                    const policy::CpuSet& wanted, const policy::CpuSet& foreign,
                    VerifyReport& report) {
  if (keeper.is_unread()) {
    report.findings.push_back(
        unread(sandbox, "cgroup", "cannot read its cgroup: " + keeper.problem()));
    return;
  }
  if (keeper.is_refused() || keeper.is_unreturned())
    return collect_unwritten_cgroup(sandbox, keeper, foreign, report);
  const bool is_contested = keeper.state() == CgroupKeeper::State::kContested;
  const bool is_ours = keeper.in_charge() && !keeper.only_watches();
  if (!(is_ours || is_contested) || !policy::plan::narrowed(keeper.cpuset(), wanted)) return;
  const policy::CpuSet actual = keeper.cpuset().effective();
  std::string text = "its cgroup has CPUs " + policy::format_list(actual) + ", wanted " +
                     policy::format_list(wanted);
  if (!keeper.problem().empty()) text += ": " + keeper.problem();
  report.findings.push_back({Severity::kDegraded,
                             "drift",
                             sandbox,
                             "cgroup",
                             wanted,
                             actual,
                             std::move(text),
                             "cgroup",
                             {}});
}

void collect_immovable(const std::string& sandbox, const std::vector<ThreadView>& threads,
                       const policy::CpuSet& foreign, VerifyReport& report) {
  for (const ThreadView& thread : threads) {
    if (thread.facts.movable || !thread.seen) continue;
    const policy::CpuSet touched = thread.actual & foreign;
    const std::string name = thread_title(thread.facts);
    std::string text = name + " \"" + thread.facts.name + "\" is bound by the kernel to " +
                       policy::format_list(thread.actual);
    if (!touched.empty()) {
      text += ", and may run on " + policy::format_list(touched) + ", which another pod owns";
    }
    report.findings.push_back({touched.empty() ? Severity::kNote : Severity::kDegraded,
                               "others",
                               sandbox,
                               name,
                               thread.wanted,
                               thread.actual,
                               std::move(text),
                               "kernel-thread",
                               {}});
  }
}

void collect_interrupts(const PlacedSandbox& sandbox, const std::vector<InterruptView>& interrupts,
                        bool held_back, VerifyReport& report) {
  for (const InterruptView& view : interrupts) {
    if (!view.drifted()) continue;
    report.findings.push_back(
        off_plan(sandbox, {view.name(), "is routed to", view.facts.cpus, view.wanted, held_back}));
  }
}

void collect_classes(const PlacedSandbox& sandbox, const ClassView& classes, VerifyReport& report) {
  for (const NiceView& view : classes.nice) collect_value(sandbox, view, report);
  collect_value(sandbox, classes.io_weight, report);
  for (const IoMaxView& view : classes.io_max) collect_value(sandbox, view, report);
  for (const policy::plan::RequestedClass& request : classes.requests) {
    if (!request.refusal) continue;
    const std::string name = std::string(policy::info_of(request.kind).name) + ' ' + request.name;
    report.findings.push_back(
        {.severity = Severity::kNote,
         .invariant = "classes",
         .sandbox = sandbox.id,
         .subject = "container " + request.container,
         .wanted = {},
         .actual = {},
         .text = "container " + request.container + " does not have " + name + ": " +
                 messages::refusal_text(request),
         .reason = "class-" + std::string(policy::plan::refusal_name(*request.refusal)),
         .remedy = {}});
  }
}

void collect_rdt(const SandboxView& view, VerifyReport& report) {
  if (view.released) return;
  const char* remedy = view.rdt.silent ? "systemctl enable --now kata-affinity-helper.socket"
                                       : "journalctl -u kata-affinity-helper";
  for (const RdtVcpu& one : view.classes.rdt) {
    const std::string problem = rdt_problem(view, one);
    if (problem.empty()) continue;
    const std::string name = "RDT class " + one.name + " of vCPU " + std::to_string(one.vcpu) +
                             " (thread " + std::to_string(one.key.tid) + ')';
    report.findings.push_back({.severity = Severity::kDegraded,
                               .invariant = "classes",
                               .sandbox = view.pod.id,
                               .subject = name,
                               .wanted = {},
                               .actual = {},
                               .text = name + " is not set: " + problem,
                               .reason = "class-unset",
                               .remedy = remedy});
  }
}

void collect_guest(const std::string& sandbox, const board::GuestView* guest,
                   VerifyReport& report) {
  if (guest == nullptr || !guest->connected || !guest->report || !guest->current) return;
  for (const auto& breach : policy::plan::check_guest(guest->spec, *guest->report)) {
    report.findings.push_back({Severity::kViolated,
                               "I4",
                               sandbox,
                               "container " + breach.container,
                               {},
                               {},
                               messages::sentence(breach),
                               "guest-elsewhere",
                               {}});
  }
}

void collect_promise(const std::string& sandbox, const policy::plan::Settings& settings,
                     const board::GuestView* guest, VerifyReport& report) {
  const auto add = [&](const std::string& text, const char* reason) {
    report.findings.push_back(
        {Severity::kDegraded, "guest", sandbox, "agent", {}, {}, text, reason, {}});
  };
  if (guest != nullptr && guest->connected) {
    if (!guest->report || guest->current) return;
    return add("guest containers are not checked: " + std::string(messages::kGuestPending),
               "guest-unconfirmed");
  }
  const bool promised = settings.guest.agent == policy::plan::GuestAgent::kOurs ||
                        settings.guest.agent == policy::plan::GuestAgent::kKataAgent;
  if (!promised) return;
  const std::string why = guest == nullptr ? "no agent address is known" : guest->text;
  add("guest containers are not placed: " + why, "guest-silent");
}

void collect_contests(const std::vector<policy::ledger::Contest>& contests, VerifyReport& report) {
  for (const policy::ledger::Contest& contest : contests) {
    const auto vm = std::ranges::find_if(contest.contenders, &policy::ledger::Contender::is_vm);
    report.findings.push_back({Severity::kDegraded,
                               "owners",
                               vm == contest.contenders.end() ? std::string() : vm->sandbox,
                               messages::cpus_text(contest.cpus),
                               {},
                               contest.cpus,
                               messages::sentence(contest),
                               "cpus-contested",
                               std::string(messages::kContestRemedy)});
  }
}

void collect_refused_vmms(const std::map<std::string, std::string>& refused, VerifyReport& report) {
  for (const auto& [pod, text] : refused) {
    report.findings.push_back(
        {Severity::kDegraded, "owners", pod, "VM", {}, {}, text, "vmm-refused", {}});
  }
}

void collect_isolation(const std::string& sandbox,
                       const std::vector<policy::plan::ContainerIsolation>& containers,
                       VerifyReport& report) {
  bool unseen_guest = false;
  for (const policy::plan::ContainerIsolation& container : containers) {
    unseen_guest |= container.guest_by_configuration;
    for (const policy::plan::NotIsolated& obstacle : container.obstacles) {
      // That is I4 itself (collect_guest).
      if (obstacle.obstacle == policy::plan::Obstacle::kGuestElsewhere) continue;
      report.findings.push_back(to_finding(sandbox, container, obstacle));
    }
  }
  if (!unseen_guest) return;
  report.findings.push_back({Severity::kNote,
                             "guest",
                             sandbox,
                             "guest",
                             {},
                             {},
                             "guest is \"none\": the vCPUs of its containers are not checked",
                             "guest-none",
                             "guest = \"auto\""});
}

void collect_start(const policy::ledger::StartGate& gate, VerifyReport& report) {
  if (gate.may_widen()) return;
  const bool is_lost = !gate.lost().empty();
  report.findings.push_back({.severity = Severity::kUnknown,
                             .invariant = "start",
                             .sandbox = {},
                             .subject = "node",
                             .wanted = {},
                             .actual = {},
                             .text = messages::waiting_text(gate),
                             .reason = is_lost ? "lost-state" : "sources-silent",
                             .remedy = remedy_of_start(gate)});
}

void collect_unsaved(const std::map<std::string, registry::Unsaved>& unsaved,
                     VerifyReport& report) {
  for (const auto& [pod, why] : unsaved) {
    report.findings.push_back({Severity::kDegraded,
                               "start",
                               pod,
                               "state",
                               {},
                               {},
                               registry::describe(pod, why),
                               "state-unsaved",
                               {}});
  }
}

}  // namespace ka::line
