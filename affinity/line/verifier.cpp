// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/verifier.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "affinity/host/realtime_limits.hpp"
#include "affinity/line/claims.hpp"
#include "affinity/line/findings.hpp"
#include "affinity/line/grade_findings.hpp"
#include "affinity/line/isolation.hpp"
#include "affinity/line/others.hpp"
#include "affinity/line/owners.hpp"
#include "affinity/line/pass.hpp"
#include "affinity/line/planning.hpp"
#include "affinity/line/sandbox.hpp"
#include "affinity/line/source_findings.hpp"
#include "affinity/line/tuned_containers.hpp"
#include "affinity/messages/isolation.hpp"
#include "policy/plan/diff.hpp"

namespace ka::line {
namespace {

/// The same breach, seen at a thread or only planned.
bool says_the_same(const policy::plan::Violation& one, const policy::plan::Violation& other) {
  return std::tie(one.breach, one.sandbox, one.subject, one.cpus) ==
         std::tie(other.breach, other.sandbox, other.subject, other.cpus);
}

/// Violations in the kernel's state, and in the plan itself where that shows more.
std::vector<policy::plan::Violation> violations_of(const Node& node, const Sandbox& sandbox) {
  const policy::ledger::PodRecord& pod = node.pod_of(sandbox);
  const policy::plan::NodeView view = node_view(node, sandbox);
  const policy::SandboxFacts facts = sandbox.facts(pod);
  const policy::plan::Settings& settings = node.settings_for(pod);
  auto violations = policy::plan::check_actual(view, facts, settings, *sandbox.plan(),
                                               actual_threads(sandbox.threads()));
  for (auto& violation : policy::plan::check_plan(view, facts, settings, *sandbox.plan())) {
    const auto same = [&](const auto& known) { return says_the_same(known, violation); };
    if (std::ranges::any_of(violations, same)) continue;
    violations.push_back(std::move(violation));
  }
  return violations;
}

/// Threads that the plan gives CPUs which nothing gets before the start is complete.
std::set<policy::ThreadKey> held_back(const Node& node, const Sandbox& sandbox) {
  std::set<policy::ThreadKey> keys;
  if (node.registry.gate().may_widen()) return keys;
  for (const auto& placement : policy::plan::shrunk(sandbox.placements())) {
    if (placement.wanted == placement.actual) keys.insert(placement.key);
  }
  return keys;
}

/// What follows from a thread that is held back is no breach yet, unless it is where another pod is
/// to be alone.
bool is_breach(const policy::plan::Violation& violation,
               const std::set<policy::ThreadKey>& held_back) {
  if (held_back.empty() || violation.breach == policy::plan::Breach::kForeignCpu) return true;
  return violation.tid != 0 &&
         std::ranges::find(held_back, violation.tid, &policy::ThreadKey::tid) == held_back.end();
}

/// Why PodResources could not be asked last; empty: it could, or there is none.
std::string why_unanswered(const board::Board& board) {
  const auto found = board.sources().find(policy::ledger::Source::kPodResources);
  return found == board.sources().end() || found->second.up ? std::string() : found->second.text;
}

/// Whether a container that is no VM's owns CPUs: its cgroup is then worth reading.
bool owns_beside_sandboxes(const policy::ledger::Ledger& ledger) {
  return std::ranges::any_of(ledger.pods(), [](const auto& entry) {
    return !entry.second.vmm && !entry.second.exclusive_cpus().empty();
  });
}

std::string placing_remedy(const Node& node, const std::string& sandbox) {
  return messages::remedy_text({.remedy = node.placing_remedy()}, sandbox);
}

}  // namespace

VerifyReport Verifier::verify() {
  report_ = {};
  dedicated_.clear();
  node_.refresh_cgroups();
  for (const auto& [id, sandbox] : node_.sandboxes) check(*sandbox);
  collect_unproved();
  collect_grades(node_.graded_pods(), report_);
  collect_tuning(node_, report_);
  collect_start(node_.registry.gate(), report_);
  collect_unsaved(node_.registry.unsaved(), report_);
  collect_contests(node_.registry.contests(), report_);
  collect_refused_vmms(node_.registry.refused_vmms(), report_);
  for (const auto& violation : policy::plan::check_dedicated(dedicated_)) {
    report_.findings.push_back(to_finding(violation, {}));
  }
  check_sources();
  const host::Tenants tenants = read_tenants();
  check_owners(tenants);
  check_others(tenants);
  report_.sort();
  return std::exchange(report_, {});
}

/// Sandboxes by their state files, of which nothing could be seen since.
void Verifier::collect_unproved() {
  for (const auto& [id, held] : node_.unproved) {
    report_.findings.push_back(unread(id, "process " + std::to_string(held.saved.pod.vmm->pid),
                                      "cannot examine its VMM: " + held.reason));
  }
}

void Verifier::check(Sandbox& sandbox) {
  base::ThreadStats stats(node_.proc.root());
  const auto seen = sandbox.observe_afresh(node_.probe(stats), node_.pod_of(sandbox),
                                           cgroup_mode(node_, sandbox));
  if (!seen) return record_unread(sandbox, seen.error());
  record_trespass(node_, sandbox);
  count_threads(sandbox);
  if (sandbox.plan() == nullptr) {
    report_.findings.push_back(unread(sandbox.id(), "plan", "no plan yet to check against"));
    return;
  }
  plan(node_, sandbox);
  report_.interrupts += static_cast<int>(sandbox.interrupts().views().size());
  check_isolation(sandbox);
  if (node_.is_given_back(sandbox)) return check_released(sandbox);
  check_plan(sandbox);
  check_grade(sandbox);
  collect_dedicated(sandbox);
}

/// Where it runs is not ours to say, but owners of its CPUs are to know.
void Verifier::check_released(const Sandbox& sandbox) {
  ++report_.released;
  if (sandbox.keeper().is_unreturned() || sandbox.keeper().is_unread())
    collect_cgroup(sandbox.id(), sandbox.keeper(), {}, node_.foreign_to(sandbox), report_);
  const policy::CpuSet touched = touched_by(node_, sandbox);
  if (touched.empty()) return;
  const auto past_grace =
      node_.registry.ownership_times().older_than(touched, kGraceOfOthers, node_.clock.now());
  report_.findings.push_back(released_on_others(node_.ledger(), node_.pod_of(sandbox), touched,
                                                !past_grace.empty(),
                                                placing_remedy(node_, sandbox.id())));
}

/// A sandbox of which nothing could be read. One whose VMM has ended meanwhile is not there to be
/// read: it is not reported.
void Verifier::record_unread(const Sandbox& sandbox, const base::Error& error) {
  const auto& vmm = node_.pod_of(sandbox).vmm;
  const int pid = vmm ? vmm->pid : 0;
  if (has_ended(node_, sandbox, error)) return;
  ++report_.known.sandboxes;
  report_.known.threads += static_cast<int>(sandbox.threads().size());
  report_.findings.push_back(unread(sandbox.id(), "process " + std::to_string(pid),
                                    "cannot read its VMM: " + error.message));
}

/// Counts the threads that there are, and names those that could not be read.
void Verifier::count_threads(const Sandbox& sandbox) {
  ++report_.known.sandboxes;
  ++report_.seen.sandboxes;
  for (const ThreadView& thread : sandbox.threads()) {
    ++report_.known.threads;
    if (thread.seen) {
      ++report_.seen.threads;
      continue;
    }
    const std::string name = thread_title(thread.facts);
    report_.findings.push_back(
        unread(sandbox.id(), name, name + " cannot be read: " + sandbox.trouble()));
  }
  const auto is_seen = [](const ThreadView& thread) { return thread.seen; };
  if (sandbox.trouble().empty() || !std::ranges::all_of(sandbox.threads(), is_seen)) return;
  report_.findings.push_back(
      unread(sandbox.id(), "sandbox", "not completely readable: " + sandbox.trouble()));
}

void Verifier::check_isolation(Sandbox& sandbox) {
  update_isolation(node_, sandbox);
  const auto& containers = sandbox.isolation().containers();
  collect_isolation(sandbox.id(), containers, report_);
  if (!containers.empty()) return;
  collect_promise(sandbox.id(), node_.settings_for(node_.pod_of(sandbox)),
                  node_.board.guest(sandbox.id()), report_);
}

/// Checks what was read of a sandbox against its plan and the invariants.
void Verifier::check_plan(const Sandbox& sandbox) {
  const std::set<policy::ThreadKey> held = held_back(node_, sandbox);
  const PlacedSandbox placed{sandbox.id(), placing_remedy(node_, sandbox.id())};
  collect_drift(placed, sandbox.threads(), held, report_);
  if (node_.registry.gate().may_widen())
    collect_cgroup(sandbox.id(), sandbox.keeper(), sandbox.cgroup_wanted(),
                   node_.foreign_to(sandbox), report_);
  collect_immovable(sandbox.id(), sandbox.threads(), node_.foreign_to(sandbox), report_);
  collect_interrupts(placed, sandbox.interrupts().views(), !node_.registry.gate().may_widen(),
                     report_);
  collect_classes(placed, sandbox.classes().view(), report_);
  if (const auto view = node_.view(sandbox.id())) collect_rdt(*view, report_);
  collect_guest(sandbox.id(), node_.board.guest(sandbox.id()), report_);
  for (const auto& violation : violations_of(node_, sandbox)) {
    if (!is_breach(violation, held)) continue;
    report_.findings.push_back(to_finding(violation, sandbox.threads()));
  }
}

void Verifier::check_grade(const Sandbox& sandbox) {
  const auto view = node_.view(sandbox.id());
  if (!view) return;
  collect_grade(*view, report_);
  if (view->partition == nullptr) return;
  collect_realtime_limits(
      *view,
      host::read_realtime_limits(node_.roots.proc, node_.roots.debugfs, view->partition->cpus),
      report_);
}

void Verifier::collect_dedicated(const Sandbox& sandbox) {
  for (const ThreadView& thread : sandbox.threads()) {
    if (thread.facts.role != policy::Role::kVcpu || !thread.seen) continue;
    const policy::plan::VcpuPlan* vcpu = sandbox.plan()->find_vcpu(thread.facts.vcpu_index);
    if (vcpu == nullptr || vcpu->role != policy::plan::VcpuRole::kDedicated) continue;
    dedicated_.push_back({sandbox.id(), vcpu->index, thread.actual});
  }
}

/// The cgroups that may use CPUs of owners, with their threads.
host::Tenants Verifier::read_tenants() const {
  if (!node_.cgroups) return {};
  if (owns_beside_sandboxes(node_.ledger())) {
    return host::tenants_of(*node_.cgroups, node_.topology.all());
  }
  const policy::CpuSet owned = owned_by_sandboxes(node_.ledger());
  return owned.empty() ? host::Tenants{} : host::tenants_of(*node_.cgroups, owned);
}

/// What may be a VM is known, and not seen; so is a sandbox whose state is lost, until that is made
/// up for.
void Verifier::check_sources() {
  add(evaluate_sources(node_.board.sources(), node_.ledger()));
  add(evaluate_lateness(node_.board.late()));
  std::set<std::string> unseen;
  for (const std::string& pod : node_.unseen_pods()) unseen.insert(pod);
  if (!node_.gate().may_widen()) {
    for (const auto& lost : node_.gate().lost()) unseen.insert(lost.pod);
  }
  unseen.erase("");
  for (const std::string& pod : unseen) {
    if (node_.sandboxes.find(pod) == nullptr) ++report_.known.sandboxes;
  }
}

void Verifier::check_owners(const host::Tenants& tenants) {
  const policy::ledger::Ledger& ledger = node_.ledger();
  const auto past_grace = node_.registry.ownership_times().older_than(
      ledger.exclusive(), kGraceOfOthers, node_.clock.now());
  const OwnersContext context{ledger, tenants, past_grace, node_.registry.has_current_resources(),
                              why_unanswered(node_.board)};
  add(evaluate_owners(context));
  add(evaluate_claims(ledger, context.is_current));
}

/// After the sandboxes have been read: their threads are known.
void Verifier::check_others(const host::Tenants& tenants) {
  const policy::CpuSet owned = owned_by_sandboxes(node_.ledger());
  if (node_.cgroups_unread) {
    report_.findings.push_back(unread_cgroups(*node_.cgroups_unread));
  } else if (!node_.cgroups && !owned.empty()) {
    report_.findings.push_back(others_not_checked());
  }
  std::set<int> ours;
  for (const auto& [id, sandbox] : node_.sandboxes) {
    for (const auto& thread : sandbox->seen().threads) ours.insert(thread.key.tid);
  }
  const auto past_grace =
      node_.registry.ownership_times().older_than(owned, kGraceOfOthers, node_.clock.now());
  add(evaluate_others(tenants, {node_.ledger(), node_.calls, ours, past_grace}));
}

void Verifier::add(std::vector<Finding> findings) {
  std::ranges::move(findings, std::back_inserter(report_.findings));
}

}  // namespace ka::line
