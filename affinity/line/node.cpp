// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/node.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "affinity/line/plain_pods.hpp"
#include "affinity/line/sandbox.hpp"

namespace ka::line {
namespace {

const policy::plan::SandboxPlan& plan_or_none(const Sandbox& sandbox) {
  static const policy::plan::SandboxPlan kNoPlan;
  return sandbox.plan() == nullptr ? kNoPlan : *sandbox.plan();
}

/// Runtimes do not name the handler of pods without a RuntimeClass.
const std::string& handler_of(const policy::ledger::PodRecord& pod) {
  static const std::string kPlain = "runc";
  return pod.handler.empty() && is_plain(pod) ? kPlain : pod.handler;
}

}  // namespace

Node::Node(policy::Topology machine, Options treatment, vmm::Roots where, Syscalls syscalls,
           registry::Registry& pods, board::Board& shown, const base::Clock& time)
    : topology(std::move(machine)),
      options(std::move(treatment)),
      roots(std::move(where)),
      proc(roots.proc),
      cgroups_unread(base::Error{}),
      calls(syscalls.affinity),
      cpusets(syscalls.cpusets),
      registry(pods),
      board(shown),
      clock(time) {
  registry.describe_with([this](const std::string& pod) { return describe(pod); });
  refresh_cgroups();
}

void Node::refresh_cgroups() {
  if (!cgroups_unread) return;
  cgroups_unread.reset();
  auto found = host::Cgroups::find(roots.proc);
  if (found) {
    cgroups = std::move(*found);
  } else if (!is_gone(found) && found.error().code != base::ErrorCode::kUnavailable) {
    cgroups_unread = std::move(found.error());
  }
}

std::vector<std::string> Node::sandbox_ids() const {
  std::vector<std::string> ids;
  for (const auto& [id, sandbox] : sandboxes) ids.push_back(id);
  return ids;
}

std::optional<SandboxView> Node::view(std::string_view id) const {
  const Sandbox* sandbox = sandboxes.find(id);
  const policy::ledger::PodRecord* pod = registry.find(id);
  if (sandbox == nullptr || pod == nullptr) return std::nullopt;
  return SandboxView{
      *pod,
      plan_or_none(*sandbox),
      sandbox->threads(),
      sandbox->seen().vcpus,
      settings_for(*pod),
      sandbox->boot(),
      sandbox->seen().vcpu_source,
      sandbox->seen().conflicts,
      sandbox->seen().unknown,
      sandbox->seen().foreign,
      sandbox->cgroup(),
      sandbox->cgroup_cpus(),
      sandbox->keeper().in_charge(),
      sandbox->keeper().theirs(),
      sandbox->keeper().problem(),
      sandbox->trouble(),
      is_given_back(*sandbox),
      options.observe,
      board.guest(id),
      board.memory(id),
      sandbox->interrupts().devices(),
      sandbox->interrupts().views(),
      sandbox->isolation().containers(),
      sandbox->classes().view(),
      board.rdt(),
      known_grade(*pod),
      board.partition(id),
      std::chrono::duration_cast<std::chrono::seconds>(clock.now().time_since_epoch()).count()};
}

std::vector<PlainPodView> Node::graded_pods() const {
  std::vector<PlainPodView> pods;
  for (const auto& [id, pod] : ledger().pods()) {
    auto grade = has_no_vm(pod) ? known_grade(pod) : std::nullopt;
    if (!grade) continue;
    policy::CpuSet cpus = own_cpus(pod, ledger());
    if (cpus.empty()) continue;
    pods.push_back(
        {pod, std::move(cpus), is_given_back(pod), *std::move(grade), board.partition(id)});
  }
  return pods;
}

const policy::ledger::PodRecord* Node::find_treated_pod(std::string_view id) const {
  const policy::ledger::PodRecord* pod = registry.find(id);
  if (pod == nullptr || !has_no_vm(*pod) || own_cpus(*pod, ledger()).empty()) return nullptr;
  const bool is_one =
      policy::plan::is_quiet(grade_for(*pod).grade) ||
      (options.quiet.tuning_by_annotation && policy::requests_tuning(pod->annotations));
  return is_one ? pod : nullptr;
}

std::optional<SandboxGrade> Node::known_grade(const policy::ledger::PodRecord& pod) const {
  const policy::plan::PodGrade own = grade_for(pod);
  const bool is_quiet = policy::plan::is_quiet(own.grade);
  if (!is_quiet && !own.refused) return std::nullopt;
  if (!is_quiet) return SandboxGrade{own.grade, own.refused, own.refused, {}};
  const auto& verdicts = board.quiet().sandboxes;
  const auto known = verdicts.find(pod.id);
  const auto obstacle = known == verdicts.end() ? policy::plan::QuietObstacle{} : known->second;
  const bool is_realtime = own.grade == policy::plan::Grade::kRealtime && !obstacle;
  return SandboxGrade{own.grade, obstacle, own.refused,
                      is_realtime ? why_not_realtime(pod) : std::string()};
}

std::string Node::why_not_realtime(const policy::ledger::PodRecord& pod) const {
  if (is_plain(pod)) return "only vCPUs are real-time threads, and it has no VM";
  if (!options.quiet.partitions) return "quiet_partitions is false";
  const board::PartitionView* partition = board.partition(pod.id);
  if (partition == nullptr) return "its vCPUs have no cpuset partition yet";
  if (!partition->problem.empty()) {
    return "its vCPUs have no cpuset partition: " + partition->problem;
  }
  return partition->not_realtime;
}

const policy::ledger::PodRecord& Node::pod_of(const Sandbox& sandbox) const {
  return *registry.find(sandbox.id());
}

const policy::plan::Settings& Node::settings_for(const policy::ledger::PodRecord& pod) const {
  const auto found = options.by_handler.find(handler_of(pod));
  return found == options.by_handler.end() ? options.settings : found->second;
}

bool Node::has_grades() const {
  const auto may_be = [this](const policy::plan::Settings& settings) {
    return policy::plan::may_be_quiet(settings, options.quiet);
  };
  return may_be(options.settings) || options.quiet.has_namespaces() ||
         std::ranges::any_of(options.by_handler,
                             [&](const auto& entry) { return may_be(entry.second); });
}

policy::plan::PodGrade Node::grade_for(const policy::ledger::PodRecord& pod) const {
  return policy::plan::grade_of({pod.pod_name, pod.requested_grade, settings_for(pod)},
                                options.quiet);
}

/// A CPU that two containers own is nobody's to use until one gives it up, also within a pod.
policy::CpuSet Node::foreign_to(const Sandbox& sandbox) const {
  policy::CpuSet foreign = ledger().exclusive_to_others(sandbox.id());
  for (const policy::ledger::Contest& contest : registry.contests()) {
    const auto& contenders = contest.contenders;
    const bool is_its_own =
        std::ranges::count(contenders, sandbox.id(), &policy::ledger::Contender::sandbox) > 0;
    if (is_its_own) foreign |= contest.cpus;
  }
  return foreign;
}

Ids Node::unseen_pods() const {
  Ids pods;
  for (const auto& [pod, held] : unproved) pods.insert(pod);
  for (const auto& [source, view] : board.sources()) {
    for (const auto& [pod, why] : view.unseen) pods.insert(pod);
  }
  return pods;
}

bool Node::is_given_back(const Sandbox& sandbox) const {
  return !options.enable || sandbox.released();
}

policy::plan::Remedy Node::placing_remedy() const {
  if (!options.enable) return policy::plan::Remedy::kEnable;
  return options.observe ? policy::plan::Remedy::kFollow : policy::plan::Remedy::kReconcile;
}

bool Node::is_given_back(const policy::ledger::PodRecord& pod) const {
  return !options.enable || released_pods.contains(pod.id);
}

ProbeContext Node::probe(base::ThreadStats& stats) const {
  return {roots, proc, cgroups, cgroups_unread, calls, stats, topology.online(), ledger()};
}

bool Node::has_no_vm(const policy::ledger::PodRecord& pod) const {
  return is_plain(pod) && !unproved.contains(pod.id);
}

state::Saved Unproved::updated(const policy::ledger::PodRecord& pod) const {
  state::Saved now = saved;
  now.pod.containers = pod.containers;
  now.pod.overrides = pod.overrides;
  return now;
}

/// What a restart must know of a pod. Of one whose VMM cannot be examined, also what was known.
std::optional<state::Saved> Node::describe(const std::string& id) const {
  const policy::ledger::PodRecord* pod = registry.find(id);
  if (pod == nullptr) return std::nullopt;
  const Sandbox* sandbox = sandboxes.find(id);
  if (sandbox != nullptr) return sandbox->saved(*pod);
  if (const auto held = unproved.find(id); held != unproved.end()) {
    return held->second.updated(*pod);
  }
  return state::Saved{.pod = *pod, .released = released_pods.contains(id)};
}

}  // namespace ka::line
