// SPDX-License-Identifier: Apache-2.0
#include "affinity/partitions/partitions.hpp"

#include <algorithm>
#include <utility>

#include "affinity/messages/events.hpp"
#include "affinity/messages/terms.hpp"

namespace ka::partitions {

using base::ErrorCode;
using board::NotificationKind;
using policy::Partition;

namespace {

std::optional<PartitionState> state_of(const std::optional<State>& state, const Wants& held,
                                       const std::string& id) {
  const auto partition = held.find(id);
  if (!state || partition == held.end()) return std::nullopt;
  const auto found = state->partitions.find(partition->second.vmm);
  return found == state->partitions.end() ? std::nullopt : std::optional(found->second);
}

/// A pod without a VM may have several, by container.
void add(board::PartitionView view, const std::string& pod, board::PartitionViews& views) {
  const auto [known, is_new] = views.try_emplace(pod, view);
  if (is_new) return;
  known->second.cpus |= view.cpus;
  if (known->second.problem.empty()) known->second.problem = std::move(view.problem);
}

}  // namespace

Partitions::Partitions(boost::asio::io_context& io, const base::Clock& clock,
                       const line::Node& node, const Places& places, Changed changed)
    : node_(node),
      requester_(io, clock, places, "partitions.json",
                 [this](const Wants& sent, auto response) { record(sent, std::move(response)); }),
      changed_(std::move(changed)),
      follower_(io, [this] { follow(); }) {}

/// What the grades have come to changes without a run of the line.
void Partitions::start() {
  follower_.start(node_.board);
  for (const auto kind : {NotificationKind::kQuiet, NotificationKind::kNotQuiet}) {
    grades_.push_back(
        node_.board.feed().subscribe(kind, [this](const auto&) { follower_.follow_soon(); }));
  }
}

void Partitions::refresh() {
  requester_.request_again();
  follow();
}

void Partitions::follow() {
  const Candidates found = candidates_of(node_, processes_);
  if (node_.gate().may_widen() && is_host_known()) request(found.wants);
  show(found);
}

/// Which CPUs the host is kept off is known, or that it is to be kept off none. While the helper
/// does not respond, what it holds stays.
bool Partitions::is_host_known() const {
  const board::QuietView& quiet = node_.board.quiet();
  return quiet.state || (quiet.wanted.empty() && quiet.trouble.empty());
}

void Partitions::request(const Wants& wants) {
  return_vcpus(wants);
  requester_.request(wants);
}

/// Where Kata writes cgroup.procs, all vCPUs leave their partition: the helper returns them.
void Partitions::return_vcpus(const Wants& wants) {
  std::erase_if(returns_, [&](const auto& entry) { return !wants.contains(entry.first); });
  for (const auto& [id, partition] : wants) {
    line::AnswerLimit& limit = returns_[id];
    if (!has_left(id) || !limit.may_answer(node_.clock.now())) continue;
    limit.answered(node_.clock.now());
    unseen_.insert(id);
    requester_.request_again();
  }
}

bool Partitions::has_left(const std::string& sandbox) const {
  const auto view = node_.view(sandbox);
  return view && std::ranges::any_of(view->threads, [](const line::ThreadView& thread) {
           return thread.facts.role == policy::Role::kVcpu && thread.drifted();
         });
}

/// A refusal changes nothing of what is held.
void Partitions::record(const Wants& sent, base::Result<State> response) {
  trouble_.clear();
  refusal_.clear();
  if (response) {
    hold(sent, *std::move(response));
  } else if (response.error().code == ErrorCode::kConflict) {
    refusal_ = helper_client::trouble_of(response.error());
  } else {
    trouble_ = helper_client::trouble_of(response.error());
    state_.reset();
  }
  show(candidates_of(node_, processes_));
}

/// What a thread could not be given while its partition was another one, the line gives it now.
void Partitions::hold(const Wants& sent, State state) {
  const auto before = std::exchange(state_, std::move(state));
  const Wants held = std::exchange(held_, sent);
  std::set<std::string> changed = std::exchange(unseen_, {});
  for (const Wants& wants : {held, held_}) {
    for (const auto& [id, partition] : wants) {
      const bool is_same = held.contains(id) && held_.contains(id) && held.at(id) == held_.at(id) &&
                           state_of(before, held, id) == state_of(state_, held_, id);
      if (!is_same) changed.insert(id);
    }
  }
  notify_of_undone();
  forget_ended();
  for (const std::string& id : changed) changed_(pod_of(id));
}

/// A helper that was started again counts from 0. What one counted before this daemon heard of it
/// is not notified.
void Partitions::notify_of_undone() {
  const auto known = std::exchange(undone_, {});
  for (const auto& [id, partition] : held_) {
    const auto state = state_of(state_, held_, id);
    if (!state) continue;
    undone_[partition.vmm] = state->undone;
    const auto before = known.find(partition.vmm);
    if (before == known.end()) continue;
    const int start = before->second <= state->undone ? before->second : 0;
    const int times = state->undone - start;
    if (times == 0) continue;
    node_.board.counters().partitions_undone += static_cast<std::uint64_t>(times);
    node_.board.notify(NotificationKind::kDrift, pod_of(id),
                       messages::partition_drift_text(partition.cpus, times), "partition");
  }
}

/// A container may go on without the process by which it was found: where there is no partition,
/// one is looked for again.
void Partitions::forget_ended() {
  std::erase_if(processes_, [this](const auto& entry) {
    const auto state = state_of(state_, held_, entry.first);
    return state && !state->problem.empty();
  });
}

void Partitions::show(const Candidates& found) {
  board::PartitionViews views;
  const Wants& shown =
      is_host_known() || !requester_.requested() ? found.wants : *requester_.requested();
  for (const auto& [id, partition] : shown) add(view_of(id, partition), pod_of(id), views);
  for (const auto& [id, why] : found.barred) views[id] = {{}, why, {}, {}};
  node_.board.set_partitions(std::move(views));
}

board::PartitionView Partitions::view_of(const std::string& id, const Partition& partition) const {
  if (!trouble_.empty()) return {partition.cpus, trouble_, {}, {}};
  const auto held = held_.find(id);
  const bool is_held = held != held_.end() && held->second == partition;
  if (!is_held)
    return {partition.cpus, refusal_.empty() ? messages::kHelperPending : refusal_, {}, {}};
  if (state_ && !state_->problem.empty()) return {partition.cpus, state_->problem, {}, {}};
  const auto state = state_of(state_, held_, id);
  if (!state) return {partition.cpus, messages::kHelperPending, {}, {}};
  return {partition.cpus, state->problem, state->not_realtime, state->low_power};
}

}  // namespace ka::partitions
