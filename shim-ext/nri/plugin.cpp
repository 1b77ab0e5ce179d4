// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/nri/plugin.hpp"

#include <malloc.h>
#include <sys/socket.h>

#include <utility>

#include "base/unix_socket.hpp"

namespace ka::nri {
namespace {

constexpr std::chrono::milliseconds kFirstPause{100};

/// From the connection to the end of Synchronize. The runtime takes in one plugin after another,
/// and gives a stuck one 5 s.
constexpr std::chrono::seconds kRegistrationTimeout{30};

/// Small beside the 2 s that a runtime waits for Synchronize.
constexpr std::chrono::milliseconds kPulse{100};

}  // namespace

Plugin::Plugin(boost::asio::io_context& io, std::filesystem::path socket, Identity identity,
               Probe probe, Listener& listener, const log::Log& log, const base::Clock& clock)
    : io_(io),
      path_(std::move(socket)),
      identity_(std::move(identity)),
      listener_(listener),
      log_(log),
      clock_(clock),
      translator_(std::move(probe), log, clock),
      timer_(io, clock),
      pulse_(io, clock),
      backoff_(kFirstPause, kLongestPause) {
  timer_.in({}, [this] { connect(); });
}

void Plugin::poll() {
  const auto events = translator_.poll();
  if (!events.empty()) listener_.after(events, {});
  report_unseen();
}

void Plugin::report_unseen() {
  if (unseen_ == translator_.unseen()) return;
  unseen_ = translator_.unseen();
  listener_.unseen(unseen_);
}

void Plugin::connect() {
  auto connected = base::connect_unix(path_);
  if (!connected) return end(connected.error().message);
  socket_ = std::make_unique<rpc::Socket>(
      io_, std::move(*connected),
      rpc::Socket::Events{[this](std::string_view bytes) { receive(bytes); },
                          [this](const std::string& reason) { end(reason); }});
  session_ = std::make_unique<Session>(
      SessionContext{io_, translator_, listener_, log_, clock_}, identity_, basic_events_,
      [this](std::string bytes) { socket_->send(std::move(bytes)); });
  timer_.in(kRegistrationTimeout, [this] { end("the runtime rejected the registration"); });
  mark_idle();
}

void Plugin::mark_idle() {
  session_->mark_idle();
  pulse_.in(kPulse, [this] { mark_idle(); });
}

void Plugin::receive(std::string_view bytes) {
  const bool makes_sense = session_->receive(bytes);
  report_unseen();
  if (!makes_sense) return end("the peer does not speak NRI");
  if (session_->stage() == Session::Stage::kFailed) return end(std::string(session_->failure()));
  if (session_->stage() != Session::Stage::kSynchronized) return;
  timer_.cancel();
  pulse_.cancel();
  backoff_.reset();
  logged_.clear();
}

void Plugin::end(const std::string& reason) {
  learn_from_end();
  pulse_.cancel();
  session_.reset();
  socket_.reset();
  ::malloc_trim(0);  // a runtime that reported too much has left a heap behind
  if (std::exchange(logged_, reason) != reason) listener_.disconnected(reason);
  timer_.in(backoff_.next(), [this] { connect(); });
}

/// A runtime that does not know an event of the mask closes the connection after Configure
/// ("invalid plugin events"), without telling us why.
void Plugin::learn_from_end() {
  if (session_ != nullptr && session_->stage() == Session::Stage::kConfigured) basic_events_ = true;
}

}  // namespace ka::nri
