// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/host/kata_link.hpp"

#include <algorithm>
#include <utility>

#include "guest-agent/host/connect.hpp"

namespace ka::guest {
namespace {

using namespace std::chrono_literals;

/// Until it is asked again for a container that it did not have yet, or for CPUs that were not
/// online yet; doubled each time.
constexpr std::chrono::milliseconds kFirstPoll = 250ms;
constexpr int kFirstWrongCpu = 8;

}  // namespace

KataLink::KataLink(boost::asio::io_context& io, const base::Clock& clock, Address address,
                   bool host_has_systemd, Events events, Timing timing)
    : host_has_systemd_(host_has_systemd),
      events_(std::move(events)),
      polls_(kFirstPoll, timing.last_pause),
      connection_(io, clock, std::move(address),
                  {.begun = [this] { begin(); },
                   .bytes = [this](std::string_view bytes) { receive(bytes); },
                   .ended = [this] { session_.reset(); },
                   .lost = [this](const std::string& reason) { lose(reason); }},
                  timing) {}

KataLink::~KataLink() = default;

/// A guest that was connected before may have been restarted: everything is sent again.
void KataLink::begin() {
  reported_connected_ = false;
  refuses_to_count_ = false;
  done_.clear();
  session_.emplace(opening_of(address()), address().port);
  connection_.send(session_->start());
  update_deadline();
}

void KataLink::receive(std::string_view bytes) {
  std::vector<KataAnswer> answers;
  std::string out;
  const bool was_awaiting = session_->awaits_online();
  const bool good = session_->receive(bytes, answers, out);
  if (good) connection_.send(std::move(out));
  const std::weak_ptr<bool> alive = alive_;
  record(answers);
  if (!alive.expired() && was_awaiting && session_ && !session_->awaits_online()) record_count();
  if (alive.expired()) return;
  if (!good) return end();
  update_deadline();
}

/// The callback may end this link. A guest that refuses to count is not asked again for as many.
void KataLink::record_count() {
  refuses_to_count_ = session_->most_online() == 0;
  if (is_counting()) poll_later();
  if (events_.counted) events_.counted();
}

bool KataLink::is_counting() const {
  return !refuses_to_count_ && session_ && session_->most_online() < wanted_online_;
}

void KataLink::poll_later() {
  connection_.later(polls_.next(), [this] {
    send_wanted();
    request_count();
  });
}

void KataLink::count_online(int wanted) {
  if (std::exchange(wanted_online_, wanted) == wanted) return;
  refuses_to_count_ = false;
  polls_.reset();
  request_count();
}

void KataLink::request_count() {
  if (!is_counting() || !session_->ready() || session_->awaits_online()) return;
  std::string out;
  session_->request_online(out);
  connection_.send(std::move(out));
  update_deadline();
}

/// The callback may end this link.
void KataLink::record(const std::vector<KataAnswer>& answers) {
  bool absent = false;
  for (const KataAnswer& answer : answers) {
    done_[answer.container] = {answer.cpus, answer.problem};
    absent |= answer.problem == policy::GuestProblem::kNotFound;
  }
  if (absent) poll_later();
  const std::weak_ptr<bool> alive = alive_;
  if (session_->ready() && !std::exchange(reported_connected_, true)) {
    connection_.welcome();
    // A late response may still arrive.
    if (session_->answered() == 1) send_wanted();
    request_count();
    if (events_.connected) events_.connected(session_->version());
  }
  if (!alive.expired() && !answers.empty() && events_.answered) events_.answered();
}

void KataLink::place(const Sets& wanted, bool again) {
  const bool other = wanted != wanted_;
  wanted_ = wanted;
  if (again) done_.clear();
  std::erase_if(done_, [this](const auto& done) { return !wanted_.contains(done.first); });
  if (other) polls_.reset();
  if (other || again) send_wanted();
}

bool KataLink::is_refused(const policy::GuestCpuSet& cpus) const {
  return host_has_systemd_ && !session_->is_init() && !cpus.empty() &&
         cpus.last() >= kFirstWrongCpu;
}

/// Containers that lose CPUs come first, so that no two containers share one in between.
void KataLink::send_wanted() {
  if (!session_ || !session_->ready()) return;
  std::vector<const Sets::value_type*> order;
  for (const auto& one : wanted_) {
    const auto done = done_.find(one.first);
    if (is_refused(one.second)) {
      done_[one.first] = {one.second, policy::GuestProblem::kRefused};
      continue;
    }
    const bool is_done = done != done_.end() && done->second.cpus == one.second &&
                         done->second.problem != policy::GuestProblem::kNotFound;
    if (!is_done) order.push_back(&one);
  }
  std::ranges::stable_sort(order, {}, [this](const Sets::value_type* one) {
    const auto done = done_.find(one->first);
    return done == done_.end() || !one->second.subset_of(done->second.cpus);
  });
  std::string out;
  for (const auto* one : order) session_->update(one->first, one->second, out);
  connection_.send(std::move(out));
  update_deadline();
}

void KataLink::update_deadline() { connection_.expect(session_->is_owed(), session_->answered()); }

std::vector<policy::GuestContainerState> KataLink::states() const {
  std::vector<policy::GuestContainerState> states;
  for (const auto& [id, placed] : done_) {
    states.push_back({.id = id,
                      .wanted = placed.cpus,
                      .method = policy::GuestMethod::kKataAgent,
                      .problem = placed.problem});
  }
  return states;
}

bool KataLink::is_current() const {
  return std::ranges::all_of(wanted_, [this](const Sets::value_type& one) {
    const auto done = done_.find(one.first);
    return done != done_.end() && done->second.cpus == one.second;
  });
}

/// The next answer counts as a new connection. The callback may end this link.
void KataLink::lose(const std::string& reason) {
  reported_connected_ = false;
  if (events_.lost) events_.lost(reason);
}

/// A policy does not change while its guest lives: there is no use in trying again.
void KataLink::end() {
  forbidden_ = session_->is_forbidden();
  const std::string reason(session_->failure());
  forbidden_ ? connection_.give_up(reason) : connection_.end(reason);
}

}  // namespace ka::guest
