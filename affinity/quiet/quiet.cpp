// SPDX-License-Identifier: Apache-2.0
#include "affinity/quiet/quiet.hpp"

#include <algorithm>
#include <utility>

#include "affinity/messages/quiet.hpp"

namespace ka::quiet {

using base::ErrorCode;
using board::NotificationKind;
using policy::CpuSet;
using policy::plan::NotQuiet;
using policy::plan::QuietClaim;
using policy::plan::QuietObstacle;

Quiet::Quiet(boost::asio::io_context& io, const base::Clock& clock, const line::Node& node,
             const Places& places)
    : node_(node),
      requester_(io, clock, places, "quiet.json",
                 [this](const policy::QuietRequest& sent, auto answer) {
                   record(sent, std::move(answer));
                 }),
      follower_(io, [this] { follow(); }) {}

void Quiet::start() {
  follower_.start(node_.board);
  updates_ = node_.board.feed().subscribe(NotificationKind::kSandboxUpdated,
                                          [this](const board::Notification& updated) {
                                            updated_.insert(updated.sandbox);
                                            follower_.follow_soon();
                                          });
}

void Quiet::refresh() {
  for (auto& [id, refusal] : refusals_) refusal.again = true;
  requester_.request_again();
  follow();
}

void Quiet::follow() {
  notify_of_refused();
  const Wants wants = wants_of(node_, held_);
  std::erase_if(refusals_, [&](const auto& entry) {
    return std::ranges::count(wants.claims, QuietClaim{entry.first, entry.second.cpus}) == 0;
  });
  if (node_.gate().may_widen()) request(wants);
  show(wants);
}

/// A pod is reported when something of it changes, and its annotations do not.
void Quiet::notify_of_refused() {
  for (const std::string& id : std::exchange(updated_, {})) {
    const policy::ledger::PodRecord* pod = node_.registry.find(id);
    if (pod == nullptr || pod->requested_grade == policy::GradeRequest::kNone) continue;
    const auto own = node_.grade_for(*pod);
    if (!own.refused) continue;
    const std::string why = messages::obstacle_text(*own.refused);
    node_.board.notify(
        NotificationKind::kGradeRefused, id,
        "its grade is " + std::string(policy::plan::grade_name(own.grade)) + ": " + why, why);
  }
}

void Quiet::request(const Wants& wants) {
  std::vector<QuietClaim> claims = unrefused(wants);
  one_by_one_ &= !std::ranges::all_of(
      claims, [&](const QuietClaim& claim) { return claim.cpus.subset_of(held_); });
  policy::QuietRequest next{policy::plan::next_request(claims, held_, one_by_one_), {}};
  next.interrupts = wants.interrupts - next.cpus;
  if (!requester_.request(next)) return;
  std::erase_if(claims, [&](const QuietClaim& claim) { return !claim.cpus.subset_of(next.cpus); });
  requested_claims_ = std::move(claims);
}

std::vector<QuietClaim> Quiet::unrefused(const Wants& wants) const {
  std::vector<QuietClaim> claims = wants.claims;
  std::erase_if(claims, [&](const QuietClaim& claim) {
    const auto refusal = refusals_.find(claim.sandbox);
    return refusal != refusals_.end() && !refusal->second.again;
  });
  return claims;
}

void Quiet::record(const policy::QuietRequest& sent, base::Result<policy::QuietState> answer) {
  trouble_.clear();
  if (answer) {
    record(std::move(*answer));
  } else if (answer.error().code != ErrorCode::kConflict) {
    trouble_ = answer.error().message;
    state_.reset();
  } else if (sent == requester_.requested()) {
    refuse(answer.error().message);
  }
  follow();
}

void Quiet::record(policy::QuietState state) {
  held_ = state.cpus;
  state_ = std::move(state);
  std::erase_if(refusals_, [&](const auto& entry) { return entry.second.cpus.subset_of(held_); });
}

/// It says no to all that was asked together. Whose CPUs it means shows when they come alone; if no
/// newcomer is among them, it means what it has granted before.
void Quiet::refuse(const std::string& why) {
  std::vector<QuietClaim> suspects = requested_claims_;
  std::erase_if(suspects, [&](const QuietClaim& claim) { return claim.cpus.subset_of(held_); });
  if (suspects.empty()) {
    held_ = {};
    suspects = requested_claims_;
  }
  if (suspects.size() > 1) {
    one_by_one_ = true;
    return;
  }
  for (const QuietClaim& claim : suspects) refusals_[claim.sandbox] = {claim.cpus, why};
}

void Quiet::show(const Wants& wants) {
  board::QuietView view{.wanted = requester_.requested().value_or(policy::QuietRequest{}).cpus,
                        .state = state_,
                        .trouble = {},
                        .sandboxes = wants.barred};
  // Where nothing is asked for and nothing is held, nobody misses the helper.
  if (!wants.claims.empty() || !wants.interrupts.empty() || !held_.empty()) {
    view.trouble = trouble_;
  }
  for (const QuietClaim& claim : wants.claims) view.sandboxes[claim.sandbox] = obstacle_of(claim);
  const Verdicts before = node_.board.quiet().sandboxes;
  const Verdicts now = view.sandboxes;
  node_.board.set_quiet(std::move(view));
  for (const auto& [id, obstacle] : now) {
    const auto known = before.find(id);
    if (known == before.end() || known->second != obstacle) notify(id, obstacle);
  }
}

/// What is notified elsewhere, or is about to change, is not.
void Quiet::notify(const std::string& sandbox, const std::optional<QuietObstacle>& obstacle) {
  if (!obstacle) {
    node_.board.notify(NotificationKind::kQuiet, sandbox, "the host keeps off its CPUs");
    return;
  }
  switch (obstacle->reason) {
    case NotQuiet::kDisabled:
    case NotQuiet::kReleased:
    case NotQuiet::kObserved:
    case NotQuiet::kNotDedicated:
    case NotQuiet::kPending:
      return;
    default:
      break;
  }
  const std::string why = messages::obstacle_text(*obstacle);
  node_.board.notify(NotificationKind::kNotQuiet, sandbox, "its grade is best-effort: " + why, why);
}

std::optional<QuietObstacle> Quiet::obstacle_of(const QuietClaim& claim) const {
  if (!trouble_.empty()) return QuietObstacle{NotQuiet::kSilent, trouble_};
  const auto refusal = refusals_.find(claim.sandbox);
  if (refusal != refusals_.end()) return QuietObstacle{NotQuiet::kRefused, refusal->second.why};
  if (!state_) return QuietObstacle{};
  const board::PartitionView* partition = node_.board.partition(claim.sandbox);
  const bool has_one = partition != nullptr && partition->problem.empty();
  return policy::plan::quiet_obstacle(claim.cpus, *state_, has_one ? partition->cpus : CpuSet{});
}

}  // namespace ka::quiet
