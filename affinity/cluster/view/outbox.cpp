// SPDX-License-Identifier: Apache-2.0
#include "affinity/cluster/view/outbox.hpp"

#include <algorithm>

namespace ka::cluster {
namespace {

const Condition kAwayCondition{"Unknown", "DaemonAway",
                               "kata-affinityd of this node does not respond"};

/// Among uids of pods.
constexpr const char* kNode = "";

/// Whether users should be told of a change: another text alone is for the condition.
bool is_news(const std::optional<Condition>& before, const std::optional<Condition>& after) {
  if (!after) return false;
  if (!before) return true;
  return before->status != after->status || before->reason != after->reason;
}

std::string reason_of(const Condition& condition, const Sandbox* sandbox) {
  if (condition.status == "True") return "Isolated";
  if (condition.status == "Unknown") return "IsolationUnknown";
  return sandbox != nullptr && sandbox->is_contested ? "ContestedByNeighbour" : "NotIsolated";
}

const Pod* pod_by_node_uid(const Pods& pods, const std::string& uid) {
  const auto found = std::ranges::find_if(
      pods.all(), [&uid](const auto& entry) { return entry.second.node_uid == uid; });
  return found == pods.all().end() ? nullptr : &found->second;
}

}  // namespace

void Outbox::update(std::vector<Sandbox> sandboxes, const std::vector<Drift>& drifts,
                    const Pods& pods) {
  sandboxes_.clear();
  for (Sandbox& sandbox : sandboxes) {
    if (sandbox.pod_uid.empty()) continue;
    const std::string uid = sandbox.pod_uid;
    sandboxes_.insert_or_assign(uid, std::move(sandbox));
  }
  move_to(State::kKnown);
  expire();
  collect_drifts(drifts);
  report_drifts(pods);
}

void Outbox::update_away() { move_to(State::kAway); }

void Outbox::move_to(State state) {
  if (state_ != State::kWithdrawn) state_ = state;
}

/// What the daemon lists at first is from before our start, and was reported then. Numbers that are
/// lower than before are those of a daemon that restarted.
void Outbox::collect_drifts(const std::vector<Drift>& drifts) {
  std::int64_t last = 0;
  for (const Drift& drift : drifts) last = std::max(last, drift.sequence);
  const std::int64_t known = last_drift_ ? (last < *last_drift_ ? 0 : *last_drift_) : last;
  for (const Drift& drift : drifts) {
    if (drift.sequence > known) drifts_.insert_or_assign(drift.sandbox, drift.text);
  }
  last_drift_ = last;
}

void Outbox::report_drifts(const Pods& pods) {
  for (const auto& [uid, sandbox] : sandboxes_) {
    const auto drift = drifts_.find(sandbox.id);
    if (drift == drifts_.end() || sandbox.drift > 0) continue;
    const Pod* pod = pod_by_node_uid(pods, uid);
    if (pod != nullptr && sandbox.is_placed) {
      add({*pod, false, "DriftRepaired", drift->second});
    }
    drifts_.erase(drift);
  }
  std::erase_if(drifts_, [this](const auto& drift) {
    return std::ranges::none_of(
        sandboxes_, [&drift](const auto& entry) { return entry.second.id == drift.first; });
  });
}

const Sandbox* Outbox::sandbox_of(const Pod& pod) const {
  const auto found = sandboxes_.find(pod.node_uid);
  return found == sandboxes_.end() ? nullptr : &found->second;
}

std::optional<Condition> Outbox::wanted(const Pod& pod) const {
  if (state_ == State::kWithdrawn) return std::nullopt;
  const Sandbox* sandbox = sandbox_of(pod);
  if (state_ == State::kAway)
    return present(pod) || sandbox != nullptr ? std::optional(kAwayCondition) : std::nullopt;
  return sandbox == nullptr ? std::nullopt : sandbox->condition;
}

/// A watch may still bring what was there before our last write.
std::optional<Condition> Outbox::present(const Pod& pod) const {
  const auto found = written_.find(pod.uid);
  return found == written_.end() ? pod.isolated : found->second.condition;
}

std::optional<Write> Outbox::next_for_node(std::optional<NodeState> node) const {
  const bool is_withdrawn = state_ == State::kWithdrawn;
  if (is_withdrawn) node.reset();
  const bool is_wanted = node || is_withdrawn;
  const bool is_written = node_ && node_->state == node;
  if (!marks_node_ || !is_wanted || is_written || held_.contains(kNode)) return std::nullopt;
  return NodeWrite{node};
}

std::optional<Write> Outbox::next_for_pods(const Pods& pods) const {
  if (state_ == State::kUnknown) return std::nullopt;
  for (const auto& [uid, pod] : pods.all()) {
    auto condition = wanted(pod);
    if (condition != present(pod) && !held_.contains(uid)) {
      return ConditionWrite{pod, std::move(condition)};
    }
  }
  return std::nullopt;
}

std::optional<Write> Outbox::next(std::optional<NodeState> node, const Pods& pods) const {
  if (auto write = next_for_node(node)) return write;
  if (auto write = next_for_pods(pods)) return write;
  if (events_.empty()) return std::nullopt;
  return events_.front();
}

void Outbox::record(const Write& write, Outcome outcome) {
  std::visit([this, outcome](const auto& one) { record(one, outcome); }, write);
}

void Outbox::record(const NodeWrite& write, Outcome outcome) {
  if (outcome == Outcome::kDone) node_ = write;
  if (outcome == Outcome::kRefused) held_.insert_or_assign(kNode, clock_.now());
}

void Outbox::record(const ConditionWrite& write, Outcome outcome) {
  if (outcome == Outcome::kRefused) held_.insert_or_assign(write.pod.uid, clock_.now());
  if (outcome != Outcome::kDone) return;
  report_change(write);
  written_.insert_or_assign(write.pod.uid, Written{write.wanted, clock_.now()});
}

void Outbox::report_change(const ConditionWrite& write) {
  if (!is_news(present(write.pod), write.wanted)) return;
  add({write.pod, write.wanted->status != "True", reason_of(*write.wanted, sandbox_of(write.pod)),
       write.wanted->message});
}

void Outbox::record(const EventWrite&, Outcome outcome) {
  if (outcome != Outcome::kFailed && !events_.empty()) events_.pop_front();
}

void Outbox::add(EventWrite event) {
  const auto key = std::pair(event.pod.uid, event.reason);
  if (reported_.contains(key) || events_.size() >= kMostEvents) return;
  reported_.emplace(key, clock_.now());
  events_.push_back(std::move(event));
}

void Outbox::expire() {
  const Time now = clock_.now();
  std::erase_if(reported_, [now](const auto& one) { return now - one.second >= kBetweenEvents; });
  std::erase_if(held_, [now](const auto& one) { return now - one.second >= kHold; });
  std::erase_if(written_, [now](const auto& one) { return now - one.second.at >= kHold; });
}

}  // namespace ka::cluster
