// SPDX-License-Identifier: Apache-2.0
#include "affinity/managed/release.hpp"

#include <utility>
#include <variant>

#include "shim-ext/watch/kubelet_state.hpp"

namespace ka::managed {

using base::Result;

/// A kubelet with the static policy writes all cpusets itself: only memory is left. One whose
/// policy is not known may have that one.
Result<std::unique_ptr<Release>> Release::open(AllocationFile file,
                                               const std::filesystem::path& kubelet_state,
                                               Machine machine) {
  const auto saved = file.load();
  if (!saved) return unexpected(saved.error());
  if (saved->empty()) return nullptr;
  const auto is_static = watch::is_policy_static(kubelet_state);
  if (!is_static) return unexpected(is_static.error());
  if (*is_static) machine.cpus = {};
  return std::unique_ptr<Release>(new Release(std::move(file), *saved, std::move(machine)));
}

Release::Release(AllocationFile file, const std::vector<policy::managed::Saved>& saved,
                 Machine machine)
    : file_(std::move(file)), machine_(std::move(machine)) {
  for (const auto& [entry, cpus_requested, had, promised, nodes] : saved) {
    if (entry.ended) continue;
    if (!entry.mems.empty()) mem_bound_.insert(entry.about.id);
    if (!machine_.cpus.empty() || !entry.mems.empty()) bound_.insert(entry.about.id);
  }
}

/// The runtime has got the answer: nothing is left of the mode.
void Release::finish() {
  if (state_ != State::kAnswered) return;
  state_ = State::kFinished;
  bound_.clear();
  file_.remove();
}

Result<void> Release::create(const nri::Described&) {
  finish();
  return {};
}

Result<void> Release::resize(const std::string&, std::int64_t, std::int64_t) {
  finish();
  return {};
}

void Release::end(const std::string&) { finish(); }

bool Release::adopt(const nri::Described&) {
  finish();
  return false;
}

void Release::forget(const std::vector<policy::ledger::Event>&) { finish(); }
void Release::apply() {}
void Release::apply_at_once() {}

/// Again after a connection that ended before the answer was certain to have arrived.
void Release::synchronize(const std::vector<nri::Described>& all, const std::set<std::string>&) {
  if (state_ == State::kAnswered) state_ = State::kReporting;
  released_.clear();
  for (const nri::Described& one : all) {
    if (bound_.contains(one.candidate.id)) released_.insert(one.candidate.id);
  }
  unsent_ = released_;
}

/// Those that the runtime does not have are gone.
nri::Updates Release::updates() {
  nri::Updates updates;
  for (const std::string& id : std::exchange(unsent_, {})) {
    updates.push_back(
        {id, machine_.cpus, mem_bound_.contains(id) ? machine_.mems : policy::NodeSet{}});
  }
  if (state_ == State::kReporting) state_ = State::kAnswered;
  return updates;
}

/// The runtime reported them as they were before the answer.
void Release::complete(std::vector<policy::ledger::Event>& events) {
  for (policy::ledger::Event& event : events) {
    auto* seen = std::get_if<policy::ledger::ContainerSeen>(&event.body);
    if (seen == nullptr || released_.erase(seen->id) == 0 || machine_.cpus.empty()) continue;
    seen->spec.cpus = machine_.cpus;
  }
}

}  // namespace ka::managed
