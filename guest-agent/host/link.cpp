// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/host/link.hpp"

#include <utility>

#include "guest-agent/host/connect.hpp"

namespace ka::guest {

Link::Link(boost::asio::io_context& io, const base::Clock& clock, Address address, Events events,
           Timing timing)
    : events_(std::move(events)),
      between_watches_(timing.between_watches),
      connection_(io, clock, std::move(address),
                  {.begun = [this] { begin(); },
                   .bytes = [this](std::string_view bytes) { receive(bytes); },
                   .ended = [this] { session_.reset(); },
                   .lost = events_.lost},
                  timing) {}

Link::~Link() = default;

void Link::begin() {
  reported_connected_ = false;
  session_.emplace(opening_of(address()), address().port);
  connection_.send(session_->start());
  if (spec_) apply(*spec_);
  update_deadline();
}

void Link::apply(const policy::GuestSpec& spec) {
  spec_ = spec;
  if (!session_) return;
  std::string out;
  session_->apply(spec, out);
  connection_.send(std::move(out));
  update_deadline();
}

void Link::receive(std::string_view bytes) {
  std::vector<News> news;
  std::string out;
  const bool good = session_->receive(bytes, news, out);
  if (!good) return connection_.end(std::string(session_->failure()));
  connection_.send(std::move(out));
  update_deadline();
  notify(news);
}

/// The callback may end this link.
void Link::notify(const std::vector<News>& news) {
  const std::weak_ptr<bool> alive = alive_;
  if (session_->ready() && !std::exchange(reported_connected_, true)) {
    connection_.welcome();
    watch_soon();
    if (events_.connected) events_.connected(session_->program());
  }
  for (const News& one : news) {
    if (alive.expired()) return;
    if (!one.answers_spec) watch_soon();
    if (events_.news) events_.news(one);
  }
}

/// The host, not the guest, decides how often updates are read.
void Link::watch_soon() {
  connection_.later(between_watches_, [this] {
    std::string out;
    session_->watch(out);
    connection_.send(std::move(out));
  });
}

void Link::update_deadline() { connection_.expect(session_->is_owed(), session_->answered()); }

}  // namespace ka::guest
