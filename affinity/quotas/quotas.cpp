// SPDX-License-Identifier: Apache-2.0
#include "affinity/quotas/quotas.hpp"

#include <utility>

#include "affinity/line/quotas.hpp"
#include "affinity/line/tuned_containers.hpp"

namespace ka::quotas {
namespace {

using base::ErrorCode;

Wants wants_of(const line::Node& node) {
  Wants wants;
  for (const line::TunedContainer& one : line::containers_to_tune(node)) {
    if (one.tuned.tuning.has_quota) continue;
    auto threads = line::quota_threads(node, one);
    if (!threads.empty()) wants[line::quota_name(one)] = std::move(threads);
  }
  return wants;
}

/// The first of its threads'.
std::string problem_in(const State& state, const std::vector<policy::ThreadKey>& threads) {
  if (!state.problem.empty()) return state.problem;
  for (const policy::ThreadKey& thread : threads) {
    const auto found = state.problems.find(thread.tid);
    if (found != state.problems.end() && !found->second.empty()) return found->second;
  }
  return {};
}

}  // namespace

Quotas::Quotas(boost::asio::io_context& io, const base::Clock& clock, const line::Node& node,
               const Places& places)
    : node_(node),
      client_(io, clock, {.socket = places.socket},
              [this](const Wants& sent, auto response) { record(sent, std::move(response)); }),
      record_(places.run / "kata-affinity/helper/quotas.json"),
      follower_(io, [this] { follow(); }) {}

void Quotas::start() { follower_.start(node_.board); }

void Quotas::refresh() {
  again_ = requested_ && !requested_->empty();
  follow();
}

void Quotas::follow() {
  if (node_.gate().may_widen()) request(wants_of(node_));
}

void Quotas::request(const Wants& wants) {
  if (wants.empty() && !requested_ && !helper_client::has_record(record_)) requested_ = wants;
  if (!std::exchange(again_, false) && requested_ == wants) return;
  requested_ = wants;
  client_.request(wants);
}

void Quotas::record(const Wants& sent, base::Result<State> response) {
  board::QuotaView view;
  if (response) {
    for (const auto& [name, threads] : sent) {
      view.containers[name] = problem_in(*response, threads);
    }
  } else if (response.error().code == ErrorCode::kConflict) {
    view.trouble = "the helper (kata-affinity-helper) refuses it: " + response.error().message;
  } else {
    view.trouble =
        "the helper (kata-affinity-helper) does not respond: " + response.error().message;
  }
  node_.board.set_quotas(std::move(view));
}

}  // namespace ka::quotas
