// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/agent.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/files.hpp"
#include "guest-agent/agent/cpuset.hpp"
#include "guest-agent/agent/files.hpp"
#include "guest-agent/protocol/limits.hpp"
#include "guest-agent/protocol/notice.hpp"

namespace ka::agent {
namespace {

constexpr mode_t kForEveryone = 0644;  // workloads read it

std::set<std::string> ids_of(const policy::GuestSpec& spec) {
  std::set<std::string> ids;
  for (const policy::GuestContainer& container : spec.containers) ids.insert(container.id);
  return ids;
}

}  // namespace

Agent::Agent(const Roots& roots, const Calls& calls)
    : roots_(roots),
      calls_(calls),
      cpu_reader_(roots),
      containers_(roots, calls),
      system_tasks_(roots, calls),
      halt_polling_(roots),
      meter_(roots.proc) {
  report_.cpus = cpu_reader_.read();
  report_.common = online();
  report_.generation = 1;
}

policy::GuestCpuSet Agent::online() const {
  policy::GuestCpuSet cpus;
  for (const policy::GuestCpu& cpu : report_.cpus) {
    if (cpu.online) cpus.add(cpu.number);
  }
  return cpus;
}

const policy::GuestReport& Agent::apply(policy::GuestSpec spec) {
  stale_.mark_if(ids_of(spec) != ids_of(spec_), Stale::kTree);
  stale_.mark_if(spec.move_interrupts != spec_.move_interrupts, Stale::kSystem);
  stale_.mark_if(spec.halt_poll != spec_.halt_poll, Stale::kSystem);
  spec_ = std::move(spec);
  requested_ = true;
  run();
  return report_;
}

void Agent::cpus_changed() {
  auto cpus = cpu_reader_.read();
  if (cpus == report_.cpus) return;
  stale_.mark(Stale::kSystem);
  stale_.mark(Stale::kTree);  // a cpuset may have lost CPUs that went
  report_.cpus = std::move(cpus);
  ++report_.generation;
  run();
}

void Agent::cgroups_changed() {
  stale_.mark(Stale::kTree);
  run();
}

bool Agent::has_given(const std::vector<std::filesystem::path>& cgroups) const {
  return std::ranges::all_of(cgroups, [this](const std::filesystem::path& cgroup) {
    const auto given = containers_.given(cgroup);
    return given_cpus(cgroup) == (given ? given : system_tasks_.given(cgroup));
  });
}

void Agent::record_container(const std::string& container, bool stopped) {
  if (stopped) reported_.erase(container);
  if (!stopped && reported_.size() < guest::kMaxContainers) reported_.insert(container);
  cgroups_changed();
}

std::optional<std::uint64_t> Agent::measure(const guest::LatencyRequest& request) {
  std::vector<LatencyMeter::Target> targets;
  for (const std::uint64_t id : request.hardware_ids) {
    const auto cpu = std::ranges::find(report_.cpus, id, &policy::GuestCpu::hardware_id);
    if (cpu == report_.cpus.end() || !cpu->online) return std::nullopt;
    targets.push_back({cpu->number, id});
  }
  return meter_.start(targets, request, hierarchy_.root);
}

void Agent::poll() {
  if (needs_polling()) run();
}

void Agent::run() {
  if (!requested_) return;
  observe_mounts();
  const bool is_other = stale_.clear(Stale::kTree);
  if (is_other) walk_tree();
  policy::GuestReport report = report_;
  if (spec_.release) {
    release(report);
  } else {
    const auto placement = policy::plan::place_in_guest(spec_, report.cpus);
    stale_.mark_if(placement.common != report.common, Stale::kSystem);
    report.common = placement.common;
    report.containers = containers_.place(
        hierarchy_, tree_, is_other ? Containers::States() : report_.containers, spec_, placement);
    keep_processes(report);
  }
  stale_.mark(Stale::kProcesses);
  stale_.mark(Stale::kNotice);
  publish(std::move(report));
}

/// Cgroups that are mounted late are found; those that are there stay where they are.
void Agent::observe_mounts() {
  const bool has_cpusets = hierarchy_.kind == CgroupKind::kV1 || hierarchy_.kind == CgroupKind::kV2;
  if (!stale_.has(Stale::kTree) && has_cpusets) return;
  const Hierarchy hierarchy = find_hierarchy(roots_);
  stale_.mark_if(hierarchy != hierarchy_, Stale::kTree);
  hierarchy_ = hierarchy;
}

/// Until they are read again.
void Agent::keep_processes(policy::GuestReport& report) const {
  for (policy::GuestContainerState& state : report.containers) {
    const auto known =
        std::ranges::find(report_.containers, state.id, &policy::GuestContainerState::id);
    if (known != report_.containers.end()) state.processes = known->processes;
  }
}

bool Agent::run_background() {
  if (stale_.clear(Stale::kNotice)) write_notice();
  if (requested_ && stale_.clear(Stale::kSystem)) {
    begin_system();
    return true;
  }
  const bool placing = system_tasks_.is_placing();
  if (!placing && !stale_.has(Stale::kProcesses)) return false;
  policy::GuestReport report = report_;
  if (stale_.clear(Stale::kProcesses)) {
    containers_.read_processes(hierarchy_, tree_, report.containers);
    report.services_moved &= system_tasks_.hold_services(tree_);
  } else {
    system_tasks_.place_some();
    if (system_tasks_.is_placing()) return true;
    system_tasks_.record(report);
  }
  publish(std::move(report));
  return placing;
}

void Agent::begin_system() {
  system_tasks_.begin(hierarchy_, tree_, report_.common, online(), spec_.move_interrupts);
  calls_.set_affinity(::getpid(), report_.common);
  policy::GuestReport report = report_;
  report.idle = halt_polling_.poll(spec_.halt_poll);
  publish(std::move(report));
}

/// A container is unknown until the host names it, even if a hook has reported it.
void Agent::walk_tree() {
  const auto requested = ids_of(spec_);
  auto ids = requested;
  ids.insert(reported_.begin(), reported_.end());
  tree_ = walk(hierarchy_, ids);
  for (const std::string& id : reported_) {
    if (requested.contains(id)) continue;
    const auto found = tree_.containers.extract(id);
    if (!found.empty()) tree_.strangers.push_back(found.mapped());
  }
}

void Agent::release(policy::GuestReport& report) {
  containers_.release(hierarchy_, online());
  report.containers.clear();
  stale_.mark_if(report.common != online(), Stale::kSystem);
  report.common = online();
}

void Agent::publish(policy::GuestReport report) {
  if (report != report_) ++report.generation;
  report_ = std::move(report);
}

void Agent::write_notice() const {
  const auto file = roots_.run / "kata-affinity/cpus.json";
  if (spec_.release) {
    std::error_code none;
    std::filesystem::remove(file, none);
    return;
  }
  const std::string text = guest::notice_text(spec_, report_);
  if (read_text(file).value_or("") + '\n' == text) return;
  replace_file(file, text, kForEveryone);
}

std::vector<std::filesystem::path> Agent::places_to_watch() const {
  auto places = tree_.branches;
  for (const auto& [id, directory] : tree_.containers) places.push_back(directory);
  return places;
}

}  // namespace ka::agent
