// SPDX-License-Identifier: Apache-2.0
#include "affinity/rdt/rdt.hpp"

#include <utility>

namespace ka::rdt {

using base::ErrorCode;
using board::NotificationKind;

Rdt::Rdt(boost::asio::io_context& io, const base::Clock& clock, const line::Node& node,
         const Places& places)
    : node_(node),
      requester_(io, clock, places, "resctrl.json",
                 [this](const Wants&, auto response) { record(std::move(response)); }),
      follower_(io, [this] { follow(); }) {}

void Rdt::start() { follower_.start(node_.board); }

void Rdt::refresh() {
  requester_.request_again();
  follow();
}

void Rdt::follow() {
  const Wants wants = wants_of(node_);
  if (node_.gate().may_widen()) requester_.request(wants);
  show(wants);
}

void Rdt::record(base::Result<State> response) {
  trouble_ = response ? std::string() : helper_client::trouble_of(response.error());
  silent_ = !response && response.error().code != ErrorCode::kConflict;
  state_.reset();
  if (response) state_ = *std::move(response);
  show(wants_of(node_));
}

/// Where no thread has a class, nobody misses the helper.
void Rdt::show(const Wants& wants) {
  board::RdtView view;
  if (!wants.empty()) view.problem = state_ ? state_->problem : trouble_;
  view.silent = silent_;
  if (state_) {
    for (const auto& [name, group] : state_->groups) {
      view.classes[name] = {group.problem, group.threads};
    }
  }
  warn(wants, view);
  node_.board.set_rdt(std::move(view));
}

/// Once for each reason, until it is gone.
void Rdt::warn(const Wants& wants, const board::RdtView& view) {
  std::set<std::string> warnings;
  if (!view.problem.empty()) warnings.insert("RDT classes have no effect: " + view.problem);
  for (const Group& group : wants) {
    const auto found = view.classes.find(group.name);
    if (!view.problem.empty() || found == view.classes.end()) continue;
    if (found->second.problem.empty()) continue;
    warnings.insert("RDT class " + group.name + " has no effect: " + found->second.problem);
  }
  for (const std::string& text : warnings) {
    if (!warned_.contains(text)) node_.board.notify(NotificationKind::kUnmanaged, {}, text);
  }
  warned_ = std::move(warnings);
}

}  // namespace ka::rdt
