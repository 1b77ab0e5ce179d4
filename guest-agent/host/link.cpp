#include "guest-agent/host/link.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <cstring>
#include <utility>

namespace ka::guest {
namespace {

using boost::system::error_code;

int connect_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace

Link::Link(boost::asio::io_context& io, Address address, Events events, Patience patience)
    : io_(io),
      address_(std::move(address)),
      events_(std::move(events)),
      patience_(patience),
      pause_timer_(io),
      deadline_timer_(io),
      watch_timer_(io),
      connecting_(io),
      pause_(patience.first_pause) {
  in(pause_timer_, {}, [this] { connect(); });
}

Link::~Link() = default;

void Link::in(Timer& timer, std::chrono::milliseconds delay, std::function<void()> then) {
  timer.expires_after(delay);
  timer.async_wait(
      [then = std::move(then), alive = std::weak_ptr<bool>(alive_)](const error_code& error) {
        if (!error && !alive.expired()) then();
      });
}

void Link::connect() {
  auto fd = guest::connect(address_);
  if (!fd) return end(fd.error().message);
  connecting_.assign(boost::asio::local::stream_protocol(), fd->release());
  in(deadline_timer_, patience_.deadline, [this] { end("the guest does not answer"); });
  wait_for_connection();
}

void Link::wait_for_connection() {
  connecting_.async_wait(
      boost::asio::local::stream_protocol::socket::wait_write,
      [this, alive = std::weak_ptr<bool>(alive_)](const error_code& error) {
        if (error || alive.expired()) return;
        const int refused = connect_error(connecting_.native_handle());
        if (refused != 0) {
          return end("cannot connect to " + to_string(address_) + ": " + std::strerror(refused));
        }
        error_code failed;
        base::Fd fd(connecting_.release(failed));
        begin(std::move(fd));
      });
}

void Link::begin(base::Fd connected) {
  began_ = std::chrono::steady_clock::now();
  told_connected_ = false;
  session_.emplace(address_.opening(), address_.port);
  answered_ = 0;
  socket_ = std::make_unique<rpc::Socket>(
      io_, std::move(connected),
      rpc::Socket::Events{[this](std::string_view bytes) { receive(bytes); },
                          [this](const std::string& reason) { end(reason); }});
  send(session_->start());
  if (wishes_) wish(*wishes_);
  follow_deadline();
}

void Link::wish(const policy::GuestWishes& wishes) {
  wishes_ = wishes;
  if (!session_) return;
  std::string out;
  session_->wish(wishes, out);
  send(std::move(out));
  follow_deadline();
}

void Link::send(std::string bytes) {
  if (!bytes.empty()) socket_->send(std::move(bytes));
}

void Link::receive(std::string_view bytes) {
  std::vector<News> news;
  std::string out;
  const bool good = session_->receive(bytes, news, out);
  if (!good) return end(std::string(session_->failure()));
  send(std::move(out));
  follow_deadline();
  tell(news);
}

/// Whoever is told may end this link.
void Link::tell(const std::vector<News>& news) {
  const std::weak_ptr<bool> alive = alive_;
  if (session_->ready() && !std::exchange(told_connected_, true)) {
    told_.clear();
    watch_soon();
    if (events_.connected) events_.connected(session_->program());
  }
  for (const News& one : news) {
    if (alive.expired()) return;
    if (!one.answers_wishes) watch_soon();
    if (events_.news) events_.news(one);
  }
}

/// The guest is not to decide how often we listen to it.
void Link::watch_soon() {
  in(watch_timer_, patience_.between_watches, [this] {
    if (!session_) return;
    std::string out;
    session_->watch(out);
    send(std::move(out));
  });
}

/// From the moment on when something is due, not from each byte of it.
void Link::follow_deadline() {
  const bool owed = session_->is_owed();
  const bool same = answered_ == std::exchange(answered_, session_->answered());
  if (owed == std::exchange(owed_, owed) && same) return;
  if (!owed) {
    deadline_timer_.cancel();
    return;
  }
  in(deadline_timer_, patience_.deadline, [this] { end("the agent does not answer in time"); });
}

/// A connection that lasted makes up for the pauses before.
void Link::end(const std::string& reason) {
  const bool lasted = session_ && session_->ready() &&
                      std::chrono::steady_clock::now() - began_ > patience_.last_pause;
  if (lasted) pause_ = patience_.first_pause;
  deadline_timer_.cancel();
  watch_timer_.cancel();
  owed_ = false;
  error_code ignored;
  connecting_.close(ignored);
  socket_.reset();
  session_.reset();
  in(pause_timer_, pause_, [this] { connect(); });
  pause_ = std::min(2 * pause_, patience_.last_pause);
  if (std::exchange(told_, reason) != reason && events_.lost) events_.lost(reason);
}

}  // namespace ka::guest
