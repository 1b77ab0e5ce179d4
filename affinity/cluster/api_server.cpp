// SPDX-License-Identifier: Apache-2.0
#include "affinity/cluster/api_server.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "base/json/json.hpp"
#include "base/json/lookup.hpp"
#include "base/tls/client.hpp"

namespace ka::cluster {
namespace {

using base::ErrorCode;
using base::Result;

constexpr std::chrono::seconds kLimit{30};
/// The server ends a watch after that, and another one begins: with another server, maybe.
constexpr int kWatchSeconds = 300;
/// A bookmark comes every minute, where nothing else does.
constexpr std::chrono::seconds kSilence{150};

bool is_success(int status) { return status >= 200 && status < 300; }

/// The message of a Status, or the number.
std::string message_of(const http::Response& response) {
  std::string text = "the API server responds " + std::to_string(response.status);
  const auto status = base::parse_json(response.body, "Status");
  const std::string message = status ? base::text_at(*status, "/message") : "";
  return message.empty() ? text : text + ": " + message;
}

base::Error refusal(const http::Response& response) {
  const bool gone = response.status == 410;
  const bool forbidden = response.status == 401 || response.status == 403;
  return {gone        ? ErrorCode::kGone
          : forbidden ? ErrorCode::kPermission
                      : ErrorCode::kUnavailable,
          message_of(response), 0};
}

/// IPv6 addresses have brackets there.
std::string host_field(const ApiServer::Address& address) {
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return (is_v6 ? '[' + address.host + ']' : address.host) + ':' + address.port;
}

}  // namespace

Outcome outcome_of(const Write& write, int status) {
  if (is_success(status)) return Outcome::kDone;
  if (status == 409) {
    // An event of that name: it was said already. A node: it changed since it was read.
    if (std::holds_alternative<EventWrite>(write)) return Outcome::kDone;
    if (std::holds_alternative<NodeWrite>(write)) return Outcome::kFailed;
    return Outcome::kRefused;
  }
  const bool is_busy = status == 429 || status >= 500;
  const bool is_token_late = status == 401;
  return is_busy || is_token_late ? Outcome::kFailed : Outcome::kRefused;
}

ApiServer::Attempt ApiServer::failed(const base::Error& error) {
  return {Outcome::kFailed, error.message, {}};
}

ApiServer::Attempt ApiServer::attempt_of(const Write& write, const http::Response& response) {
  return {outcome_of(write, response.status), message_of(response), response.retry_after};
}

ApiServer::ApiServer(const base::Clock& clock, Address address, Account account, std::string node,
                     bool taints)
    : clock_(clock),
      address_(std::move(address)),
      account_(std::move(account)),
      node_(std::move(node)),
      taints_(taints) {}

tls::Server ApiServer::server() const {
  return {address_.host, address_.port, account_.authorities()};
}

Result<http::RequestFields> ApiServer::fields(const ApiRequest& request) const {
  auto token = account_.token();
  if (!token) return unexpected(token.error());
  return http::RequestFields{host_field(address_), request.content_type, std::move(*token)};
}

Result<http::Response> ApiServer::send(const ApiRequest& request) const {
  const auto with = fields(request);
  if (!with) return unexpected(with.error());
  return tls::call(server(), request.request, *with, kLimit);
}

Result<std::string> ApiServer::list(Pause& pause) const {
  auto response = send({list_request(node_)});
  if (!response) return unexpected(response.error());
  pause = response->retry_after;
  if (!is_success(response->status)) return unexpected(refusal(*response));
  return std::move(response->body);
}

Result<void> ApiServer::watch(const std::string& version, Pause& pause,
                              const std::function<bool(std::string_view line)>& handle) const {
  const ApiRequest request{watch_request(node_, version, kWatchSeconds)};
  const auto with = fields(request);
  if (!with) return unexpected(with.error());
  const auto ended = tls::stream_lines(server(), request.request, *with, kSilence, handle);
  if (!ended) return unexpected(ended.error());
  pause = ended->retry_after;
  if (!is_success(ended->status)) return unexpected(refusal(*ended));
  return {};
}

ApiServer::Attempt ApiServer::write(const Write& write) const {
  return std::visit([this](const auto& one) { return this->write(one); }, write);
}

ApiServer::Attempt ApiServer::write(const NodeWrite& write) const {
  const auto node = send({node_query(node_)});
  if (!node) return failed(node.error());
  if (!is_success(node->status)) return attempt_of(write, *node);
  const auto request = node_request(node->body, write.state, taints_);
  if (!request) return failed(request.error());
  if (!*request) return {};
  const auto response = send(**request);
  if (!response) return failed(response.error());
  return attempt_of(write, *response);
}

ApiServer::Attempt ApiServer::write(const ConditionWrite& write) const {
  const auto response = send(condition_request(write, clock_.wall()));
  if (!response) return failed(response.error());
  return attempt_of(write, *response);
}

ApiServer::Attempt ApiServer::write(const EventWrite& write) const {
  const auto response = send(event_request(write, node_, clock_.wall()));
  if (!response) return failed(response.error());
  return attempt_of(write, *response);
}

}  // namespace ka::cluster
