// SPDX-License-Identifier: Apache-2.0
#include "affinity/guests/our_peer.hpp"

#include <utility>

namespace ka::guests {
namespace {

/// What it is asked, by hardware id. Nothing where it is to give everything back.
policy::GuestSets writes_of(const policy::GuestSpec& spec) {
  policy::GuestSets writes;
  for (const policy::GuestContainer& container : spec.containers) {
    for (const std::uint64_t id : container.hardware_ids) {
      writes[container.id].add(static_cast<int>(id));
    }
  }
  return writes;
}

}  // namespace

OurPeer::OurPeer(boost::asio::io_context& io, const base::Clock& clock, GuestRecord& record,
                 const guest::Address& address, PeerEvents events,
                 std::function<void(std::chrono::nanoseconds)> reacted)
    : clock_(clock),
      record_(record),
      events_(std::move(events)),
      reacted_(std::move(reacted)),
      link_(io, clock, address,
            guest::Link::Events{[this](const std::string& program) { connect(program); },
                                [this](const guest::News& news) { record_news(news); },
                                [this](const std::string& reason) { lose(reason); }}) {}

void OurPeer::adopt() {
  record_.view = {.address = guest::to_string(address()),
                  .text = "not connected yet",
                  .spec = record_.view.spec,
                  .writes = record_.view.writes,
                  .plugged = record_.view.plugged};
  sent_.reset();
}

void OurPeer::connect(const std::string& program) {
  events_.connected();
  record_.view.connected = true;
  record_.view.text = program;
  events_.changed();
}

/// What it got before holds until it responds.
void OurPeer::place(base::Clock::Time planned) {
  board::GuestView& view = record_.view;
  if (sent_ == view.spec) return events_.changed();
  sent_ = view.spec;
  view.current = false;
  if (view.connected && !unanswered_since_) unanswered_since_ = planned;
  view.writes.address = guest::to_string(address());
  for (auto& [container, ids] : writes_of(view.spec)) view.writes.containers[container] |= ids;
  events_.changed();
  link_.apply(view.spec);
}

void OurPeer::record_news(const guest::News& news) {
  board::GuestView& view = record_.view;
  view.report = news.report;
  view.current |= news.answers_spec;
  if (news.answers_spec) {
    view.writes.containers = writes_of(view.spec);
    // With "none" there is nothing left to request.
    if (view.spec.release) events_.outdated();
  }
  if (news.answers_spec && unanswered_since_) {
    view.reaction = clock_.now() - *std::exchange(unanswered_since_, std::nullopt);
    reacted_(view.reaction);
  }
  events_.changed();
}

void OurPeer::lose(const std::string& reason) {
  unanswered_since_.reset();
  events_.lost(reason);
}

/// A container that is not in the guest (yet) has nothing that could run elsewhere.
std::optional<policy::GuestDoubt> OurPeer::doubt_about(
    const policy::GuestContainer& container) const {
  if (container.waiting) return policy::GuestDoubt::kVcpusMissing;
  if (!record_.view.report || !record_.view.current) return policy::GuestDoubt::kUnanswered;
  const auto* state = find_state(record_, container.id);
  if (state != nullptr && state->problem == policy::GuestProblem::kRefused) {
    return policy::GuestDoubt::kRefused;
  }
  return std::nullopt;
}

bool OurPeer::is_placed(const std::string& container) const {
  const auto* state = find_state(record_, container);
  return record_.view.current && state != nullptr &&
         state->problem != policy::GuestProblem::kNotFound;
}

}  // namespace ka::guests
