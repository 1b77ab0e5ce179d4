// SPDX-License-Identifier: Apache-2.0
// verify: the kernel read afresh and held against the invariants. It trusts neither what was last
// seen nor what was written.
#include <algorithm>
#include <tuple>

#include "affinity/engine/engine.hpp"
#include "affinity/engine/isolation.hpp"
#include "affinity/engine/sandbox.hpp"
#include "affinity/messages/events.hpp"
#include "affinity/messages/isolation.hpp"
#include "affinity/messages/violations.hpp"
#include "policy/plan/guest.hpp"

namespace ka::engine {
namespace {

std::string name_of(const policy::ThreadFacts& thread) {
  std::string name(policy::role_name(thread.role));
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

/// The same breach, seen at a thread or only planned.
bool says_the_same(const policy::plan::Violation& one, const policy::plan::Violation& other) {
  return std::tie(one.breach, one.sandbox, one.subject, one.cpus) ==
         std::tie(other.breach, other.sandbox, other.subject, other.cpus);
}

void collect_drift(const std::string& sandbox, const std::vector<ThreadView>& threads,
                   VerifyReport& report) {
  for (const ThreadView& thread : threads) {
    if (!thread.drifted()) continue;
    const std::string name = name_of(thread.facts) + thread_text(thread.facts.key.tid);
    report.findings.push_back({Severity::kViolated, "drift", sandbox, name, thread.wanted,
                               thread.actual,
                               name + " has " + policy::format_list(thread.actual) + ", wanted " +
                                   policy::format_list(thread.wanted),
                               "drift", "kata-affinityctl reconcile " + sandbox});
  }
}

void collect_interrupts(const std::string& sandbox, const std::vector<InterruptView>& interrupts,
                        VerifyReport& report) {
  for (const InterruptView& view : interrupts) {
    if (!view.drifted()) continue;
    report.findings.push_back(
        {Severity::kViolated, "drift", sandbox, view.name(), view.wanted, view.facts.cpus,
         view.name() + " is routed to " + policy::format_list(view.facts.cpus) + ", wanted " +
             policy::format_list(view.wanted),
         "drift", "kata-affinityctl reconcile " + sandbox});
  }
}

/// The last piece of the chain, as far as a guest is believed. What it does not confirm is an
/// obstacle to its containers' isolation.
void collect_guest(const std::string& sandbox, const board::GuestView* guest,
                   VerifyReport& report) {
  if (guest == nullptr || !guest->connected || !guest->report || !guest->current) return;
  for (const auto& breach : policy::plan::check_guest(guest->wishes, *guest->report)) {
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

/// An agent that the configuration promises, and that does not answer: worth a word although no
/// container needs it.
void collect_promise(const std::string& sandbox, const policy::plan::Settings& settings,
                     const board::GuestView* guest, VerifyReport& report) {
  const bool promised = settings.guest.agent == policy::plan::GuestAgent::kOurs ||
                        settings.guest.agent == policy::plan::GuestAgent::kKataAgent;
  if (!promised || (guest != nullptr && guest->connected)) return;
  const std::string why = guest == nullptr ? "no agent address is known" : guest->text;
  report.findings.push_back({Severity::kDegraded,
                             "guest",
                             sandbox,
                             "agent",
                             {},
                             {},
                             "guest containers are not placed: " + why,
                             "guest-silent",
                             {}});
}

bool is_of_guest(policy::plan::Obstacle obstacle) {
  return obstacle == policy::plan::Obstacle::kGuestSilent ||
         obstacle == policy::plan::Obstacle::kGuestUnconfirmed;
}

Finding to_finding(const std::string& sandbox, const policy::plan::ContainerIsolation& container,
                   const policy::plan::NotIsolated& obstacle) {
  const std::string name =
      container.container + (container.name.empty() ? "" : " (" + container.name + ')');
  return {Severity::kDegraded,
          is_of_guest(obstacle.obstacle) ? "guest" : "isolation",
          sandbox,
          "container " + container.container,
          container.cpus,
          obstacle.cpus,
          "container " + name + " is not isolated: " + messages::obstacle_text(obstacle),
          std::string(policy::plan::obstacle_name(obstacle.obstacle)),
          messages::remedy_text(obstacle, sandbox)};
}

/// Exclusive containers that have less than their CPUs alone.
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

Finding unread(const std::string& sandbox, const std::string& subject, std::string text) {
  return {Severity::kUnknown, "unread", sandbox, subject, {}, {}, std::move(text), "unread", {}};
}

/// Who owns which CPU is not known yet: nothing that is held against it is certain.
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
                             .remedy = is_lost ? "kata-affinityctl reconcile" : ""});
}

void collect_dedicated(const Sandbox& sandbox,
                       std::vector<policy::plan::DedicatedVcpu>& dedicated) {
  for (const ThreadView& thread : sandbox.threads()) {
    if (thread.facts.role != policy::Role::kVcpu || !thread.seen) continue;
    const policy::plan::VcpuPlan* vcpu = sandbox.plan()->find_vcpu(thread.facts.vcpu_index);
    if (vcpu == nullptr || vcpu->role != policy::plan::VcpuRole::kDedicated) continue;
    dedicated.push_back({sandbox.id(), vcpu->index, thread.actual});
  }
}

}  // namespace

/// What breaks an invariant in what the kernel has, and in the plan itself where that says more.
std::vector<policy::plan::Violation> Engine::violations_of(
    const Sandbox& sandbox, const policy::ledger::PodRecord& pod) const {
  const policy::plan::NodeView node = node_view(sandbox.id());
  const policy::SandboxFacts facts = sandbox.facts(pod);
  const policy::plan::Settings& settings = settings_for(pod);
  auto violations = policy::plan::check_actual(node, facts, settings, *sandbox.plan(),
                                               actual_threads(sandbox.threads()));
  for (auto& violation : policy::plan::check_plan(node, facts, settings, *sandbox.plan())) {
    const auto same = [&](const auto& known) { return says_the_same(known, violation); };
    if (std::ranges::any_of(violations, same)) continue;
    violations.push_back(std::move(violation));
  }
  return violations;
}

/// A sandbox of which nothing could be read. One whose VMM has ended meanwhile is not there to be
/// read: nothing is said of it.
void Engine::note_unread(const Sandbox& sandbox, const base::Error& error, VerifyReport& report) {
  const auto& vmm = ledger_.find(sandbox.id())->vmm;
  const int pid = vmm ? vmm->pid : 0;
  if (has_ended(sandbox, error)) return;
  ++report.known.sandboxes;
  report.known.threads += static_cast<int>(sandbox.threads().size());
  report.findings.push_back(unread(sandbox.id(), "process " + std::to_string(pid),
                                   "cannot read its VMM: " + error.message));
}

/// Counts the threads that there are, and names those that could not be read.
void Engine::count_threads(const Sandbox& sandbox, VerifyReport& report) {
  ++report.known.sandboxes;
  ++report.seen.sandboxes;
  for (const ThreadView& thread : sandbox.threads()) {
    ++report.known.threads;
    if (thread.seen) {
      ++report.seen.threads;
      continue;
    }
    const std::string name = name_of(thread.facts) + thread_text(thread.facts.key.tid);
    report.findings.push_back(
        unread(sandbox.id(), name, name + " cannot be read: " + sandbox.trouble()));
  }
  const auto is_seen = [](const ThreadView& thread) { return thread.seen; };
  if (sandbox.trouble().empty() || !std::ranges::all_of(sandbox.threads(), is_seen)) return;
  report.findings.push_back(
      unread(sandbox.id(), "sandbox", "not completely readable: " + sandbox.trouble()));
}

/// What was read of a sandbox, held against its plan and the invariants.
void Engine::check_held(const Sandbox& sandbox, const policy::ledger::PodRecord& pod,
                        VerifyReport& report) {
  collect_drift(sandbox.id(), sandbox.threads(), report);
  collect_interrupts(sandbox.id(), sandbox.interrupts().views(), report);
  collect_guest(sandbox.id(), board_.guest(sandbox.id()), report);
  for (const auto& violation : violations_of(sandbox, pod)) {
    report.findings.push_back(to_finding(violation, sandbox.threads()));
  }
}

VerifyReport Engine::verify() {
  VerifyReport report;
  std::vector<policy::plan::DedicatedVcpu> dedicated;
  for (const auto& [id, sandbox] : sandboxes_) {
    base::ThreadStats stats(proc_.root());
    const policy::ledger::PodRecord& pod = *ledger_.find(id);
    const auto seen = sandbox->observe_afresh(eyes(stats), pod, cgroup_mode(*sandbox));
    if (!seen) {
      note_unread(*sandbox, seen.error(), report);
      continue;
    }
    count_threads(*sandbox, report);
    if (sandbox->plan() == nullptr) {
      report.findings.push_back(unread(id, "plan", "no plan yet to check against"));
      continue;
    }
    plan(*sandbox);
    report.interrupts += static_cast<int>(sandbox->interrupts().views().size());
    follow_isolation(*sandbox);
    collect_isolation(id, sandbox->isolation(), report);
    if (sandbox->isolation().empty()) {
      collect_promise(id, settings_for(pod), board_.guest(id), report);
    }
    if (is_given_back(*sandbox)) {
      ++report.released;
      continue;
    }
    check_held(*sandbox, pod, report);
    collect_dedicated(*sandbox, dedicated);
  }
  collect_start(gate_, report);
  for (const auto& violation : policy::plan::check_dedicated(dedicated)) {
    report.findings.push_back(to_finding(violation, {}));
  }
  check_others(report);
  report.sort();
  return report;
}

}  // namespace ka::engine
