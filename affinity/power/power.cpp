// SPDX-License-Identifier: Apache-2.0
#include "affinity/power/power.hpp"

#include <utility>

#include "affinity/line/tuned_containers.hpp"

namespace ka::power {
namespace {

using policy::PowerRequest;
using policy::PowerRequests;

PowerRequests requests_of(const line::Node& node) {
  PowerRequests requests;
  for (const line::TunedContainer& one : line::containers_to_tune(node)) {
    const policy::CpuTuning& tuning = one.tuned.tuning;
    if (tuning.resume_latency.empty() && tuning.governor.empty()) continue;
    for (const int cpu : one.cpus) {
      requests.try_emplace(cpu, PowerRequest{tuning.resume_latency, tuning.governor, true});
    }
  }
  return requests;
}

}  // namespace

Power::Power(boost::asio::io_context& io, const base::Clock& clock, const line::Node& node,
             const Places& places)
    : node_(node),
      requester_(
          io, clock, places, "power.json",
          [this](const PowerRequests& sent, auto response) { record(sent, std::move(response)); }),
      follower_(io, [this] { follow(); }) {}

void Power::start() { follower_.start(node_.board); }

void Power::refresh() {
  requester_.request_again();
  follow();
}

void Power::follow() {
  if (node_.gate().may_widen()) requester_.request(requests_of(node_));
}

void Power::record(const PowerRequests& sent, base::Result<State> response) {
  board::PowerView view;
  for (const auto& [cpu, request] : sent) view.cpus.add(cpu);
  if (response) {
    view.trouble = response->problem;
    view.problems = std::move(response->problems);
  } else {
    view.trouble = helper_client::trouble_of(response.error());
  }
  node_.board.set_power(std::move(view));
}

}  // namespace ka::power
