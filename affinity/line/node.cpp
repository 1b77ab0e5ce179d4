// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/node.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "affinity/line/sandbox.hpp"

namespace ka::line {
namespace {

std::optional<host::Cgroups> find_cgroups(const vmm::Roots& roots) {
  auto found = host::Cgroups::find(roots.proc);
  return found ? std::optional(std::move(*found)) : std::nullopt;
}

const policy::plan::SandboxPlan& plan_or_none(const Sandbox& sandbox) {
  static const policy::plan::SandboxPlan kNoPlan;
  return sandbox.plan() == nullptr ? kNoPlan : *sandbox.plan();
}

/// What is known of its grade; absent where that is best-effort.
std::optional<SandboxGrade> grade_of(const board::QuietView& quiet, const std::string& id,
                                     const policy::plan::Settings& settings) {
  if (settings.grade != policy::plan::Grade::kQuiet) return std::nullopt;
  const auto known = quiet.sandboxes.find(id);
  return known == quiet.sandboxes.end() ? SandboxGrade{policy::plan::QuietObstacle{}}
                                        : SandboxGrade{known->second};
}

}  // namespace

Node::Node(policy::Topology machine, Options treatment, vmm::Roots where, Syscalls syscalls,
           registry::Registry& pods, board::Board& shown, const base::Clock& time)
    : topology(std::move(machine)),
      options(std::move(treatment)),
      roots(std::move(where)),
      proc(roots.proc),
      cgroups(find_cgroups(roots)),
      calls(syscalls.affinity),
      cpusets(syscalls.cpusets),
      registry(pods),
      board(shown),
      clock(time) {
  registry.describe_with([this](const std::string& pod) { return describe(pod); });
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
      sandbox->seen().vcpu_source,
      sandbox->seen().conflicts,
      sandbox->seen().unknown,
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
      grade_of(board.quiet(), sandbox->id(), settings_for(*pod)),
      std::chrono::duration_cast<std::chrono::seconds>(clock.now().time_since_epoch()).count()};
}

const policy::ledger::PodRecord& Node::pod_of(const Sandbox& sandbox) const {
  return *registry.find(sandbox.id());
}

const policy::plan::Settings& Node::settings_for(const policy::ledger::PodRecord& pod) const {
  const auto found = options.by_handler.find(pod.handler);
  return found == options.by_handler.end() ? options.settings : found->second;
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

bool Node::is_given_back(const Sandbox& sandbox) const {
  return !options.enable || sandbox.released();
}

ProbeContext Node::probe(base::ThreadStats& stats) const {
  return {roots, proc, cgroups, calls, stats, topology.online()};
}

/// What a restart must know of a pod.
std::optional<state::Saved> Node::describe(const std::string& id) const {
  const policy::ledger::PodRecord* pod = registry.find(id);
  if (pod == nullptr) return std::nullopt;
  const Sandbox* sandbox = sandboxes.find(id);
  return sandbox == nullptr ? state::Saved{.pod = *pod} : sandbox->saved(*pod);
}

}  // namespace ka::line
