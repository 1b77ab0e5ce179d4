#include "guest-agent/host/kata_link.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ka::guest {
namespace {

using boost::system::error_code;
using namespace std::chrono_literals;

/// Until a container that kata-agent did not have yet is asked for again; doubled each time.
constexpr std::chrono::milliseconds kFirstLook = 250ms;
constexpr int kFirstWrongCpu = 8;

int connect_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace

KataLink::KataLink(boost::asio::io_context& io, Address address, bool host_has_systemd,
                   Events events, Patience patience)
    : io_(io),
      address_(std::move(address)),
      host_has_systemd_(host_has_systemd),
      events_(std::move(events)),
      patience_(patience),
      pause_timer_(io),
      deadline_timer_(io),
      again_timer_(io),
      connecting_(io),
      pause_(patience.first_pause),
      look_again_(kFirstLook) {
  in(pause_timer_, {}, [this] { connect(); });
}

KataLink::~KataLink() = default;

void KataLink::in(Timer& timer, std::chrono::milliseconds delay, std::function<void()> then) {
  timer.expires_after(delay);
  timer.async_wait(
      [then = std::move(then), alive = std::weak_ptr<bool>(alive_)](const error_code& error) {
        if (!error && !alive.expired()) then();
      });
}

void KataLink::connect() {
  auto fd = guest::connect(address_);
  if (!fd) return end(fd.error().message);
  connecting_.assign(boost::asio::local::stream_protocol(), fd->release());
  in(deadline_timer_, patience_.deadline, [this] { end("the guest does not answer"); });
  wait_for_connection();
}

void KataLink::wait_for_connection() {
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

/// A guest that was connected before may have been started anew: all is told again.
void KataLink::begin(base::Fd connected) {
  told_connected_ = false;
  done_.clear();
  session_.emplace(address_.opening(), address_.port);
  socket_ = std::make_unique<rpc::Socket>(
      io_, std::move(connected),
      rpc::Socket::Events{[this](std::string_view bytes) { receive(bytes); },
                          [this](const std::string& reason) { end(reason); }});
  send(session_->start());
  follow_deadline();
}

void KataLink::receive(std::string_view bytes) {
  std::vector<KataAnswer> answers;
  std::string out;
  const bool good = session_->receive(bytes, answers, out);
  if (good) send(std::move(out));
  const std::weak_ptr<bool> alive = alive_;
  take(answers);
  if (alive.expired()) return;
  if (!good) return end(std::string(session_->failure()));
  follow_deadline();
}

/// Whoever is told may end this link.
void KataLink::take(const std::vector<KataAnswer>& answers) {
  bool absent = false;
  for (const KataAnswer& answer : answers) {
    done_[answer.container] = {answer.cpus, answer.problem};
    absent |= answer.problem == policy::GuestProblem::kNotFound;
  }
  if (absent) {
    in(again_timer_, look_again_, [this] { send_wanted(); });
    look_again_ = std::min(2 * look_again_, patience_.last_pause);
  }
  const std::weak_ptr<bool> alive = alive_;
  if (session_->ready() && !std::exchange(told_connected_, true)) {
    told_.clear();
    pause_ = patience_.first_pause;
    send_wanted();
    if (events_.connected) events_.connected(session_->version());
  }
  if (!alive.expired() && !answers.empty() && events_.told) events_.told();
}

void KataLink::place(const Sets& wanted, bool again) {
  const bool other = wanted != wanted_;
  wanted_ = wanted;
  if (again) done_.clear();
  std::erase_if(done_, [this](const auto& done) { return !wanted_.contains(done.first); });
  if (other) look_again_ = kFirstLook;
  if (other || again) send_wanted();
}

bool KataLink::is_refused(const policy::GuestCpuSet& cpus) const {
  return host_has_systemd_ && !session_->is_init() && !cpus.empty() &&
         cpus.last() >= kFirstWrongCpu;
}

/// Whoever loses CPUs goes first: nobody is to meet him on them.
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
  send(std::move(out));
  follow_deadline();
}

void KataLink::send(std::string bytes) {
  if (!bytes.empty() && socket_) socket_->send(std::move(bytes));
}

/// From the last answer on, or from the call that it is due for.
void KataLink::follow_deadline() {
  if (!session_->is_owed()) {
    deadline_timer_.cancel();
    return;
  }
  if (deadline_for_ == session_->answered() + 1) return;
  deadline_for_ = session_->answered() + 1;
  in(deadline_timer_, patience_.deadline, [this] { end("kata-agent does not answer in time"); });
}

std::vector<policy::GuestContainerState> KataLink::states() const {
  std::vector<policy::GuestContainerState> states;
  for (const auto& [id, told] : done_) {
    states.push_back({.id = id,
                      .wanted = told.cpus,
                      .method = policy::GuestMethod::kKataAgent,
                      .problem = told.problem});
  }
  return states;
}

bool KataLink::is_current() const {
  return std::ranges::all_of(wanted_, [this](const Sets::value_type& one) {
    const auto done = done_.find(one.first);
    return done != done_.end() && done->second.cpus == one.second;
  });
}

/// A policy does not change while its guest lives: there is no use in trying again.
void KataLink::end(const std::string& reason) {
  const bool forbidden = session_ && session_->is_forbidden();
  deadline_timer_.cancel();
  again_timer_.cancel();
  deadline_for_ = 0;
  error_code ignored;
  connecting_.close(ignored);
  socket_.reset();
  session_.reset();
  if (!forbidden) in(pause_timer_, pause_, [this] { connect(); });
  pause_ = std::min(2 * pause_, patience_.last_pause);
  if (std::exchange(told_, reason) != reason && events_.lost) events_.lost(reason);
}

}  // namespace ka::guest
