// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/answer.hpp"

#include <sys/un.h>

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "base/json/json.hpp"
#include "base/json/lookup.hpp"
#include "shim-ext/proto/task.pb.h"

namespace ka::proxy {
namespace {

constexpr std::string_view kScheme = "unix://";
constexpr std::string_view kSuffix = ".affinity";

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

/// Absent when the text is no object with an address.
std::optional<boost::json::object> parse_answer(std::string_view text) {
  auto document = base::parse_json(text, "the shim's response");
  if (!document || !base::member(*document, "address").is_string()) return std::nullopt;
  return std::move(document->get_object());
}

/// Absent when the bytes are no such message.
std::optional<proto::task::BootstrapResult> parse_message(std::string_view bytes) {
  proto::task::BootstrapResult message;
  const bool good = message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  if (!good || message.address().empty()) return std::nullopt;
  return message;
}

}  // namespace

// The first byte of a message is the tag of one of its fields, which is neither '{' nor 'u'.
std::optional<std::string> address_in(std::string_view answer) {
  const std::string_view text = trim(answer);
  if (text.starts_with('{')) {
    const auto object = parse_answer(text);
    return object ? std::optional(std::string(object->at("address").get_string())) : std::nullopt;
  }
  if (text.starts_with(kScheme)) return std::string(text);
  const auto message = parse_message(answer);
  return message ? std::optional(message->address()) : std::nullopt;
}

std::string with_address(std::string_view answer, std::string_view other) {
  const std::string_view text = trim(answer);
  if (text.starts_with('{')) {
    auto object = parse_answer(text);
    if (!object) return std::string(answer);
    object->at("address") = other;
    return boost::json::serialize(*object);
  }
  if (text.starts_with(kScheme)) return std::string(other);
  auto message = parse_message(answer);
  if (!message) return std::string(answer);
  message->set_address(std::string(other));
  return message->SerializeAsString();
}

std::optional<std::string> socket_path(std::string_view address) {
  if (!address.starts_with(kScheme)) return std::nullopt;
  address.remove_prefix(kScheme.size());
  if (!address.starts_with('/')) return std::nullopt;
  return std::string(address);
}

std::string unix_address(std::string_view path) { return std::string(kScheme).append(path); }

std::optional<std::string> proxy_path(const std::string& shim_path) {
  std::string path = shim_path + std::string(kSuffix);
  if (path.size() >= sizeof(sockaddr_un::sun_path)) return std::nullopt;
  return path;
}

std::optional<std::string> shim_path(std::string_view proxy_path) {
  if (!proxy_path.ends_with(kSuffix)) return std::nullopt;
  return std::string(proxy_path.substr(0, proxy_path.size() - kSuffix.size()));
}

}  // namespace ka::proxy
