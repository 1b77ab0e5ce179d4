// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/client/daemon.hpp"

#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/http/client.hpp"
#include "base/json/json.hpp"
#include "base/json/lookup.hpp"
#include "base/unix_socket.hpp"

namespace ka::cli {
namespace {

using base::ErrorCode;
using base::Result;

ErrorCode code_of(int status) {
  switch (status) {
    case 404:
      return ErrorCode::kNotFound;
    case 409:
      return ErrorCode::kConflict;
    case 500:
      return ErrorCode::kInternal;
    case 503:
      return ErrorCode::kTransient;
    default:
      return ErrorCode::kInvalid;
  }
}

Result<boost::json::object> interpret(const http::Response& answer) {
  auto document = base::parse_json(answer.body, "the daemon's response");
  if (!document || !document->is_object()) {
    return base::fail(ErrorCode::kUnavailable,
                      "the response is not kata-affinityd's: another program listens there, or a "
                      "proxy; check --socket");
  }
  if (answer.status == 200) return std::move(document->get_object());
  return base::fail(code_of(answer.status), text_of(*document, "error"));
}

/// An error of the connection, with what to do about it; any other as it is.
base::Error explained(const std::string& socket, base::Error error) {
  if (error.code != ErrorCode::kUnavailable || error.number == 0) return error;
  error.message = connect_advice(socket, error.number, ::geteuid() == 0);
  return error;
}

}  // namespace

std::string connect_advice(const std::string& socket, int number, bool is_root) {
  if (number == ENOENT || number == ECONNREFUSED) {
    return fmt::format(
        "kata-affinityd is not running: nothing listens at {}. Start it: systemctl start "
        "kata-affinityd",
        socket);
  }
  if (number != EACCES && number != EPERM) {
    return fmt::format("cannot connect to {}: {}. See: systemctl status kata-affinityd", socket,
                       std::strerror(number));
  }
  if (!is_root) {
    return fmt::format("not root: {} belongs to root. Run the command with sudo", socket);
  }
  return fmt::format(
      "permission denied: the kernel keeps root from {}. See: journalctl -k --grep=denied "
      "(AppArmor, SELinux, or a user namespace)",
      socket);
}

Result<boost::json::object> Daemon::get(const std::string& target) const {
  return call("GET", target, {});
}

Result<boost::json::object> Daemon::post(const std::string& target) const {
  return call("POST", target, {});
}

Result<boost::json::object> Daemon::post(const std::string& target,
                                         const boost::json::object& body) const {
  return call("POST", target, boost::json::serialize(body));
}

Result<boost::json::object> Daemon::put(const std::string& target,
                                        const boost::json::object& body) const {
  return call("PUT", target, boost::json::serialize(body));
}

Result<boost::json::object> Daemon::remove(const std::string& target) const {
  return call("DELETE", target, {});
}

Result<boost::json::object> Daemon::call(const std::string& method, const std::string& target,
                                         const std::string& body) const {
  const auto wait_limit = wait_limit_ ? std::optional(wait_limit_()) : std::nullopt;
  const auto answer = http::call(socket_, {method, target, body}, wait_limit);
  if (!answer) return unexpected(explained(socket_, answer.error()));
  return interpret(*answer);
}

std::optional<int> Daemon::pid() const {
  const auto connected = base::connect_unix(socket_);
  if (!connected) return std::nullopt;
  ucred peer{};
  socklen_t size = sizeof(peer);
  const int failed = ::getsockopt(connected->get(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
  if (failed != 0 || peer.pid <= 0) return std::nullopt;
  return peer.pid;
}

Result<void> Daemon::stream_events(const std::function<bool(std::string_view)>& handle) const {
  const auto answer = http::stream_lines(socket_, "/v1/events", handle);
  if (!answer) return unexpected(explained(socket_, answer.error()));
  if (answer->status == 200) return {};
  if (const auto refused = interpret(*answer); !refused) return unexpected(refused.error());
  return {};
}

std::string encode(std::string_view id) {
  std::string text;
  for (const char c : id) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       c == '_' || c == '.' || c == '-';
    text += plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  return text;
}

std::string text_of(const boost::json::value& object, std::string_view name) {
  return base::text_in(base::member(object, name));
}

long long number_of(const boost::json::value& object, std::string_view name) {
  return base::number_in(base::member(object, name));
}

double real_of(const boost::json::value& object, std::string_view name) {
  const boost::json::value& value = base::member(object, name);
  return value.is_number() ? value.to_number<double>() : 0;
}

bool flag_of(const boost::json::value& object, std::string_view name) {
  const bool* flag = base::member(object, name).if_bool();
  return flag != nullptr && *flag;
}

const boost::json::array& array_of(const boost::json::value& object, std::string_view name) {
  static const boost::json::array kEmpty;
  const auto* array = base::member(object, name).if_array();
  return array == nullptr ? kEmpty : *array;
}

}  // namespace ka::cli
