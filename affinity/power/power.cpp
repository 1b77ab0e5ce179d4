// SPDX-License-Identifier: Apache-2.0
#include "affinity/power/power.hpp"

#include <utility>

#include "affinity/line/tuned_containers.hpp"

namespace ka::power {
namespace {

using base::ErrorCode;
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
      client_(
          io, clock, {.socket = places.socket},
          [this](const PowerRequests& sent, auto response) { record(sent, std::move(response)); }),
      record_(places.run / "kata-affinity/helper/power.json"),
      follower_(io, [this] { follow(); }) {}

void Power::start() { follower_.start(node_.board); }

void Power::refresh() {
  again_ = requested_ && !requested_->empty();
  follow();
}

void Power::follow() {
  if (node_.gate().may_widen()) request(requests_of(node_));
}

void Power::request(const PowerRequests& requests) {
  if (requests.empty() && !requested_ && !helper_client::has_record(record_)) requested_ = requests;
  if (!std::exchange(again_, false) && requested_ == requests) return;
  requested_ = requests;
  client_.request(requests);
}

void Power::record(const PowerRequests& sent, base::Result<State> response) {
  board::PowerView view;
  for (const auto& [cpu, request] : sent) view.cpus.add(cpu);
  if (response) {
    view.trouble = response->problem;
    view.problems = std::move(response->problems);
  } else if (response.error().code == ErrorCode::kConflict) {
    view.trouble = "the helper (kata-affinity-helper) refuses it: " + response.error().message;
  } else {
    view.trouble =
        "the helper (kata-affinity-helper) does not respond: " + response.error().message;
  }
  node_.board.set_power(std::move(view));
}

}  // namespace ka::power
