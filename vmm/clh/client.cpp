// SPDX-License-Identifier: Apache-2.0
#include "vmm/clh/client.hpp"

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <string>
#include <utility>

#include "base/backoff.hpp"
#include "vmm/clh/answer.hpp"
#include "vmm/clh/vm_info.hpp"

namespace ka::clh {
namespace {

namespace asio = boost::asio;

using boost::system::error_code;

// Errors as values: co_await gives (error_code, result).
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

constexpr int kGood = 200;

base::Error to_error(const error_code& error) {
  const bool is_errno = error.category() == boost::system::system_category();
  const bool gone = is_errno && base::classify_errno(error.value()) == base::ErrorCode::kGone;
  return {gone ? base::ErrorCode::kGone : base::ErrorCode::kUnavailable,
          "its API: " + error.message(), is_errno ? error.value() : 0};
}

base::Result<vmm::MonitorFacts> read(const Answer& answer) {
  if (answer.status() != kGood) {
    return base::fail(base::ErrorCode::kUnavailable,
                      "its API: status " + std::to_string(answer.status()));
  }
  const auto info = read_vm_info(answer.body());
  if (!info) return unexpected(info.error());
  return to_facts(*info);
}

}  // namespace

class Client::Asker : public std::enable_shared_from_this<Asker> {
 public:
  Asker(asio::io_context& io, vmm::MonitorOptions options, vmm::MonitorHandlers handlers)
      : io_(io),
        options_(std::move(options)),
        handlers_(std::move(handlers)),
        socket_(io),
        deadline_(io),
        pause_(io) {}

  void start() { asio::co_spawn(io_, serve(shared_from_this()), asio::detached); }
  void stop();
  void refresh();

 private:
  static asio::awaitable<void> serve(std::shared_ptr<Asker> self);
  asio::awaitable<base::Result<vmm::MonitorFacts>> ask();
  asio::awaitable<base::Result<vmm::MonitorFacts>> talk();
  asio::awaitable<void> rest(std::chrono::milliseconds pause);
  void tell(base::Result<vmm::MonitorFacts> facts) const;
  void close();

  asio::io_context& io_;
  vmm::MonitorOptions options_;
  vmm::MonitorHandlers handlers_;
  bool stopped_ = false;
  bool wanted_ = true;
  bool late_ = false;                ///< the deadline of the question under way has passed
  unsigned long long question_ = 0;  ///< so that a late deadline breaks no later one
  asio::local::stream_protocol::socket socket_;
  asio::steady_timer deadline_;
  asio::steady_timer pause_;  ///< between questions; cancelled by refresh()
};

void Client::Asker::stop() {
  stopped_ = true;
  handlers_ = {};
  close();
  deadline_.cancel();
  pause_.cancel();
}

void Client::Asker::close() {
  error_code ignored;
  socket_.close(ignored);
}

void Client::Asker::refresh() {
  if (std::exchange(wanted_, true)) return;
  pause_.cancel();
}

asio::awaitable<void> Client::Asker::rest(std::chrono::milliseconds pause) {
  pause_.expires_after(pause);
  co_await pause_.async_wait(kAwait);
}

/// After a failure it stays wanted, and is asked again after the pause; else when it is wanted.
asio::awaitable<void> Client::Asker::serve(std::shared_ptr<Asker> self) {
  base::Backoff backoff(self->options_.first_pause, self->options_.last_pause);
  while (!self->stopped_) {
    if (!self->wanted_) {
      co_await self->rest(std::chrono::hours(1));
      continue;
    }
    self->wanted_ = false;
    auto facts = co_await self->ask();
    if (self->stopped_) break;
    const bool failed = !facts;
    self->tell(std::move(facts));
    if (!failed) {
      backoff.reset();
      continue;
    }
    self->wanted_ = true;
    co_await self->rest(backoff.next());
  }
}

void Client::Asker::tell(base::Result<vmm::MonitorFacts> facts) const {
  // Copies: a handler may destroy the client, and with it itself.
  if (facts) {
    const auto told = handlers_.facts;
    if (told) told(std::move(*facts));
  } else {
    const auto failed = handlers_.failed;
    if (failed)
      failed({facts.error().code, options_.socket.string() + ": " + facts.error().message,
              facts.error().number});
  }
}

asio::awaitable<base::Result<vmm::MonitorFacts>> Client::Asker::ask() {
  late_ = false;
  deadline_.expires_after(options_.deadline);
  deadline_.async_wait([self = shared_from_this(), number = ++question_](const error_code& error) {
    if (error || number != self->question_) return;
    self->late_ = true;
    self->close();
  });
  auto facts = co_await talk();
  ++question_;
  deadline_.cancel();
  close();
  if (late_) co_return base::fail(base::ErrorCode::kUnavailable, "its API: no response in time");
  co_return facts;
}

asio::awaitable<base::Result<vmm::MonitorFacts>> Client::Asker::talk() {
  const asio::local::stream_protocol::endpoint endpoint(options_.socket.string());
  const auto [refused] = co_await socket_.async_connect(endpoint, kAwait);
  if (refused) co_return unexpected(to_error(refused));
  const std::string question = get_request(kVmInfo);
  const auto [unsent, sent] = co_await asio::async_write(socket_, asio::buffer(question), kAwait);
  if (unsent) co_return unexpected(to_error(unsent));
  Answer answer;
  std::array<char, 16384> chunk{};
  for (;;) {
    const auto [error, size] = co_await socket_.async_read_some(asio::buffer(chunk), kAwait);
    if (error) co_return unexpected(to_error(error));
    const auto whole = answer.feed(std::string_view(chunk.data(), size));
    if (!whole) co_return unexpected(whole.error());
    if (*whole) co_return read(answer);
  }
}

base::Result<std::unique_ptr<vmm::Monitor>> Client::start(asio::io_context& io,
                                                          vmm::MonitorOptions options,
                                                          vmm::MonitorHandlers handlers) {
  auto asker = std::make_shared<Asker>(io, std::move(options), std::move(handlers));
  asker->start();
  return std::unique_ptr<vmm::Monitor>(new Client(std::move(asker)));
}

Client::Client(std::shared_ptr<Asker> asker) : asker_(std::move(asker)) {}

Client::~Client() { asker_->stop(); }

void Client::refresh() { asker_->refresh(); }

}  // namespace ka::clh
