// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/relay.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "shim-ext/proxy/socket.hpp"

namespace ka::proxy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// How long containerd may take to read the last bytes of a shim that has ended.
constexpr seconds kLastWords{60};
// How long the daemon may take for the last reports.
constexpr seconds kLastReports{1};

// How long no connection is taken in for want of descriptors, where none ends before.
constexpr seconds kBreath{1};

constexpr Loop::Time kNever = Loop::Time::max();
// Decoding waits until the relay is idle, and no longer than this.
constexpr milliseconds kQuiet{1};
constexpr milliseconds kLatest{20};

bool is_for_want_of_descriptors(int error) { return error == EMFILE || error == ENFILE; }

}  // namespace

Relay::Relay(const base::Clock& clock, Sockets sockets, std::string api_socket,
             std::filesystem::path bundles, SharedPool pool)
    : loop_(clock),
      sockets_(std::move(sockets)),
      outbox_(loop_, std::move(api_socket)),
      reporter_(std::move(bundles), {::getpid(), pool.before()}),
      pool_(std::move(pool)),
      next_pool_check_(loop_.now() + SharedPool::kPeriod) {
  loop_.add(sockets_.listener.get(), EPOLLIN, listener_);
  loop_.add(sockets_.guard.get(), EPOLLIN | EPOLLRDHUP, guard_);
}

Relay::~Relay() = default;

void Relay::run() {
  while (!shim_gone_) turn(kNever);
  const auto last_words = loop_.now() + kLastWords;
  while (!connections_.empty() && loop_.now() < last_words) turn(last_words);
  digest();
  connections_.clear();
  const auto last_reports = loop_.now() + kLastReports;
  while (!outbox_.idle() && loop_.now() < last_reports) turn(last_reports);
}

void Relay::turn(Loop::Time limit) {
  const bool quiet = loop_.turn(std::min(limit, next_time())) == 0;
  over_.clear();
  const auto now = loop_.now();
  if (undigested_ && (quiet || now >= passed_at_ + kLatest)) digest();
  outbox_.on_time();
  if (listen_again_ && now >= *listen_again_) listen();
  if (now < next_pool_check_) return;
  next_pool_check_ = now + SharedPool::kPeriod;
  // A pool that cannot be read now is read again later.
  (void)pool_.leave_others();
}

Loop::Time Relay::next_time() const {
  const Loop::Time quiet = undigested_ ? loop_.now() + kQuiet : kNever;
  return std::min({quiet, next_pool_check_, outbox_.deadline().value_or(kNever),
                   listen_again_.value_or(kNever)});
}

// The shim's side first: whom there is no descriptor for stays in the queue, where containerd
// waits, and is not cut off.
void Relay::accept() {
  auto shim = connect_to(sockets_.shim_path);
  if (!shim && is_for_want_of_descriptors(shim.error().number)) return stop_listening();
  base::Fd client(
      ::accept4(sockets_.listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!client && is_for_want_of_descriptors(errno)) return stop_listening();
  if (client && shim) splice(std::move(client), std::move(*shim));
}

// Asking again at once would only burn a CPU.
void Relay::stop_listening() {
  loop_.remove(sockets_.listener.get());
  listen_again_ = loop_.now() + kBreath;
}

void Relay::listen() {
  loop_.add(sockets_.listener.get(), EPOLLIN, listener_);
  listen_again_.reset();
}

void Relay::splice(base::Fd client, base::Fd shim) {
  const auto connection = connections_.emplace(connections_.end());
  connection->observer = std::make_unique<Observer>(Observer::Events{
      .on_request = [this](const Call& call) { post(reporter_.on_request(call)); },
      .on_response = [this](
                         const Call& call,
                         const Response& answer) { post(reporter_.on_response(call, answer)); }});
  Observer& observer = *connection->observer;
  connection->pair =
      std::make_unique<Pair>(loop_, std::move(client), std::move(shim), block_,
                             Pair::Events{.to_shim =
                                              [&](std::string_view bytes) {
                                                observer.from_containerd(bytes);
                                                passed();
                                              },
                                          .to_client =
                                              [&](std::string_view bytes) {
                                                observer.from_shim(bytes);
                                                passed();
                                              },
                                          .ended = [this, connection] { ended(connection); }});
}

void Relay::ended(Connections::iterator connection) {
  connection->observer->digest();
  over_.splice(over_.end(), connections_, connection);
  if (listen_again_) listen();
}

// The guard's end is the shim's, unless the shim only tired of a silent connection.
void Relay::check_shim() {
  loop_.remove(sockets_.guard.get());
  sockets_.guard.reset();  // there may be no other descriptor left
  auto again = connect_to(sockets_.shim_path);
  if (again) {
    sockets_.guard = std::move(*again);
    loop_.add(sockets_.guard.get(), EPOLLIN | EPOLLRDHUP, guard_);
    return;
  }
  shim_gone_ = true;
  if (!std::exchange(listen_again_, std::nullopt)) loop_.remove(sockets_.listener.get());
  sockets_.listener.reset();
}

void Relay::passed() {
  if (undigested_) return;
  undigested_ = true;
  passed_at_ = loop_.now();
}

void Relay::digest() {
  undigested_ = false;
  for (const Connection& connection : connections_) connection.observer->digest();
}

void Relay::post(const std::vector<Report>& reports) {
  for (const Report& report : reports) outbox_.post(report);
}

}  // namespace ka::proxy
