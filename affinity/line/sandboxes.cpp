// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/sandboxes.hpp"

#include <utility>

#include "affinity/line/sandbox.hpp"

namespace ka::line {
namespace {

/// Adds a plan's part to the load, or takes it off again (`each` = -1).
void add_part(std::vector<int>& load, const policy::plan::SandboxPlan& plan, int each) {
  std::vector<int> part;
  policy::plan::add_floating_load(part, plan);
  if (load.size() < part.size()) load.resize(part.size());
  for (std::size_t cpu = 0; cpu < part.size(); ++cpu) load[cpu] += each * part[cpu];
}

}  // namespace

Sandboxes::Sandboxes() = default;
Sandboxes::~Sandboxes() = default;

Sandbox* Sandboxes::find(std::string_view id) const {
  const auto found = map_.find(id);
  return found == map_.end() ? nullptr : found->second.get();
}

Affected Sandboxes::all() const {
  Affected all;
  for (const auto& [id, sandbox] : map_) all.push_back(sandbox.get());
  return all;
}

void Sandboxes::add(const policy::ledger::PodRecord& pod) {
  if (pod.vmm && !map_.contains(pod.id)) map_[pod.id] = std::make_unique<Sandbox>(pod.id);
}

void Sandboxes::remove(std::string_view id) {
  const auto gone = map_.find(id);
  if (gone == map_.end()) return;
  count_floating(*gone->second, -1);
  map_.erase(gone);
}

void Sandboxes::restore(const state::Saved& saved) {
  const std::string& id = saved.pod.id;
  remove(id);
  auto sandbox = std::make_unique<Sandbox>(id);
  sandbox->restore(saved);
  count_floating(*sandbox, 1);
  map_[id] = std::move(sandbox);
}

/// The plan was for the containers of `former`, and an operator has released that one.
void Sandboxes::hand_over(std::string_view former, const policy::ledger::PodRecord& pod) {
  const Sandbox* before = find(former);
  if (before == nullptr) return;
  state::Saved saved = before->saved(pod);
  saved.plan.reset();
  saved.released = saved.left_alone = false;
  if (const Sandbox* known = find(pod.id)) saved.originals.merge(known->saved(pod).originals);
  remove(former);
  restore(saved);
}

void Sandboxes::set_plan(Sandbox& sandbox, policy::plan::SandboxPlan plan, policy::CpuSet doubted) {
  count_floating(sandbox, -1);
  sandbox.set_plan(std::move(plan), std::move(doubted));
  count_floating(sandbox, 1);
}

std::vector<int> Sandboxes::floating_load_beside(const Sandbox& sandbox) const {
  std::vector<int> load = floating_load_;
  if (sandbox.plan() != nullptr) add_part(load, *sandbox.plan(), -1);
  return load;
}

void Sandboxes::count_floating(const Sandbox& sandbox, int each) {
  if (sandbox.plan() != nullptr) add_part(floating_load_, *sandbox.plan(), each);
}

}  // namespace ka::line
