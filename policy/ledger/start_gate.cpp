// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/start_gate.hpp"

#include <algorithm>

namespace ka::policy::ledger {

bool is_runtime_id(std::string_view id) {
  constexpr std::size_t kDigits = 64;
  return id.size() == kDigits && id.find_first_not_of("0123456789abcdef") == id.npos;
}

void StartGate::expect(Source source) {
  silent_.insert(source);
  close();
}

void StartGate::set_lost(const std::vector<LostState>& lost) {
  if (!dismissed_) lost_ = lost;
  std::erase_if(lost_, [&](const LostState& one) { return reported_pods_.contains(one.pod); });
  if (!lost_.empty()) close();
  step();
}

void StartGate::synced(Source source) {
  silent_.erase(source);
  reported_.insert(source);
  step();
}

void StartGate::pod_reported(std::string_view pod) {
  if (may_widen() || pod.empty()) return;
  reported_pods_.emplace(pod);
  std::erase_if(lost_, [&](const LostState& one) { return one.pod == pod; });
  step();
}

void StartGate::expire() {
  expired_ = true;
  step();
}

void StartGate::dismiss_lost() {
  dismissed_ = true;
  lost_.clear();
  step();
}

/// It closes once, at the start.
void StartGate::close() {
  if (was_closed_) return;
  was_closed_ = true;
  phase_ = Phase::kWaiting;
}

void StartGate::step() {
  if (may_widen()) return;
  if (!silent_.empty() && !expired_) return;
  phase_ = is_accounted_for() ? Phase::kOpen : Phase::kBlind;
}

bool StartGate::is_accounted_for() const {
  if (lost_.empty()) return true;
  const auto knows_all = [](Source source) { return traits_of(source).knows_every_pod; };
  const auto is_theirs = [](const LostState& lost) { return is_runtime_id(lost.pod); };
  return silent_.empty() && std::ranges::any_of(reported_, knows_all) &&
         std::ranges::all_of(lost_, is_theirs);
}

}  // namespace ka::policy::ledger
