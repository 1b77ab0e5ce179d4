// SPDX-License-Identifier: Apache-2.0
#include "affinity/quotas/quotas.hpp"

#include <utility>

#include "affinity/line/quotas.hpp"
#include "affinity/line/tuned_containers.hpp"

namespace ka::quotas {
namespace {

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
      requester_(io, clock, places, "quotas.json",
                 [this](const Wants& sent, auto response) { record(sent, std::move(response)); }),
      follower_(io, [this] { follow(); }) {}

void Quotas::start() { follower_.start(node_.board); }

void Quotas::refresh() {
  requester_.request_again();
  follow();
}

void Quotas::follow() {
  if (node_.gate().may_widen()) requester_.request(wants_of(node_));
}

void Quotas::record(const Wants& sent, base::Result<State> response) {
  board::QuotaView view;
  if (response) {
    for (const auto& [name, threads] : sent) {
      view.containers[name] = problem_in(*response, threads);
    }
  } else {
    view.trouble = helper_client::trouble_of(response.error());
  }
  node_.board.set_quotas(std::move(view));
}

}  // namespace ka::quotas
