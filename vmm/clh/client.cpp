// SPDX-License-Identifier: Apache-2.0
#include "vmm/clh/client.hpp"

#include <string>
#include <utility>

#include "base/unix_socket.hpp"
#include "vmm/clh/vm_info.hpp"

namespace ka::clh {
namespace {

constexpr int kGood = 200;

base::Result<vmm::MonitorFacts> read(const base::Result<http::Response>& response) {
  if (!response) return unexpected(response.error());
  if (response->status != kGood) {
    return base::fail(base::ErrorCode::kUnavailable, "status " + std::to_string(response->status));
  }
  const auto info = read_vm_info(response->body);
  if (!info) return unexpected(info.error());
  return to_facts(*info);
}

}  // namespace

base::Result<std::unique_ptr<vmm::Monitor>> Client::start(boost::asio::io_context& io,
                                                          const base::Clock& clock,
                                                          vmm::MonitorOptions options,
                                                          vmm::MonitorHandlers handlers) {
  return std::make_unique<Client>(io, clock, std::move(options), std::move(handlers));
}

Client::Client(boost::asio::io_context& io, const base::Clock& clock, vmm::MonitorOptions options,
               vmm::MonitorHandlers handlers)
    : io_(io),
      clock_(clock),
      options_(std::move(options)),
      handlers_(std::move(handlers)),
      backoff_(options_.first_pause, options_.last_pause),
      next_(io, clock) {
  refresh();
}

/// The pause after a failure is not cut short.
void Client::refresh() {
  if (!std::exchange(wanted_, true) && !query_) query_in({});
}

void Client::query_in(std::chrono::milliseconds pause) {
  next_.in(pause, [this] { query(); });
}

void Client::query() {
  wanted_ = false;
  auto connected = base::connect_unix(options_.socket);
  if (!connected) return fail(connected.error());
  query_.emplace(io_, clock_, std::move(*connected), http::Request{"GET", std::string(kVmInfo), {}},
                 options_.deadline,
                 [this](const base::Result<http::Response>& response) { record(response); });
}

/// A handler may destroy this client: nothing is done after it was called.
void Client::record(const base::Result<http::Response>& response) {
  auto facts = read(response);
  query_.reset();
  if (!facts) return fail(base::error_in(options_.socket.string() + ": its API", facts.error()));
  backoff_.reset();
  if (wanted_) query_in({});
  const auto on_facts = handlers_.facts;
  if (on_facts) on_facts(std::move(*facts));
}

void Client::fail(const base::Error& error) {
  wanted_ = true;
  query_in(backoff_.next());
  const auto failed = handlers_.failed;
  if (failed) failed(error);
}

}  // namespace ka::clh
