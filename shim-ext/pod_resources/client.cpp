// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/pod_resources/client.hpp"

#include <utility>

#include "base/unix_socket.hpp"
#include "shim-ext/pod_resources/answer.hpp"

namespace ka::pod_resources {
namespace {

using base::ErrorCode;
using policy::ledger::ResourcesSeen;

constexpr const char* kService = "/v1.PodResourcesLister/";

base::Error error_of(const rpc::Response& response) {
  const bool limited = response.code == rpc::Code::kResourceExhausted;
  return {
      limited ? ErrorCode::kTransient : ErrorCode::kUnavailable,
      "status " + std::to_string(static_cast<int>(response.code)) + " (" + response.message + ')',
      0};
}

}  // namespace

Client::Client(boost::asio::io_context& io, const base::Clock& clock, std::filesystem::path socket,
               Done done)
    : io_(io),
      clock_(clock),
      socket_(std::move(socket)),
      done_(std::move(done)),
      start_(io, clock) {
  start_.in({}, [this] { list(); });
}

void Client::list() {
  const auto parse = [this](const std::string& message) -> base::Result<void> {
    auto assignments = parse_list(message);
    if (!assignments) return unexpected(std::move(assignments.error()));
    seen_.assignments = std::move(*assignments);
    return {};
  };
  call("List", parse, [this] { query_allocatable(); });
}

void Client::query_allocatable() {
  const auto parse = [this](const std::string& message) -> base::Result<void> {
    auto cpus = parse_allocatable(message);
    if (!cpus) return unexpected(std::move(cpus.error()));
    seen_.allocatable = std::move(*cpus);
    return {};
  };
  call("GetAllocatableResources", parse, [this] { end(std::move(seen_)); });
}

void Client::call(const std::string& method, const Parse& parse, std::function<void()> then) {
  auto connected = base::connect_unix(socket_);
  if (!connected) return end(unexpected(std::move(connected.error())));
  call_.emplace(
      io_, clock_, std::move(*connected), grpc::Request{kService + method, {}}, kAnswerTime,
      [this, method, parse, then = std::move(then)](const base::Result<rpc::Response>& response) {
        auto parsed = read(response, parse);
        call_.reset();
        if (parsed) return then();
        end(unexpected(base::error_in(socket_.native() + ": " + method, parsed.error())));
      });
}

base::Result<void> Client::read(const base::Result<rpc::Response>& response,
                                const Parse& parse) const {
  if (!response) return unexpected(response.error());
  if (response->code != rpc::Code::kOk) return unexpected(error_of(*response));
  return parse(response->payload);
}

void Client::end(base::Result<ResourcesSeen> seen) {
  const auto done = std::exchange(done_, {});
  done(std::move(seen));
}

}  // namespace ka::pod_resources
