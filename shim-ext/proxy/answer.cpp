#include "shim-ext/proxy/answer.hpp"

#include <sys/un.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

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

std::optional<std::string> address_in_json(std::string_view text) {
  boost::system::error_code wrong;
  const auto document = boost::json::parse(text, wrong);
  if (wrong || !document.is_object()) return std::nullopt;
  const auto* address = document.get_object().if_contains("address");
  if (address == nullptr || !address->is_string()) return std::nullopt;
  return std::string(address->get_string());
}

/// Absent when the bytes are no such message.
std::optional<proto::task::BootstrapResult> parse_message(std::string_view bytes) {
  proto::task::BootstrapResult message;
  const bool good = message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  if (!good || message.address().empty()) return std::nullopt;
  return message;
}

// The first byte of a message is the tag of one of its fields, which is neither of these.
bool is_text(std::string_view answer) {
  return answer.starts_with('{') || answer.starts_with(kScheme);
}

}  // namespace

std::optional<std::string> address_in(std::string_view answer) {
  const std::string_view text = trim(answer);
  if (text.starts_with('{')) return address_in_json(text);
  if (is_text(text)) return std::string(text);
  const auto message = parse_message(answer);
  return message ? std::optional(message->address()) : std::nullopt;
}

std::string with_address(std::string_view answer, std::string_view own, std::string_view other) {
  if (auto message = is_text(trim(answer)) ? std::nullopt : parse_message(answer)) {
    message->set_address(std::string(other));
    return message->SerializeAsString();
  }
  std::string text(answer);
  // JSON writes a backslash as two: what is found then may begin in the middle of such a pair.
  if (own.find('\\') != std::string_view::npos) return text;
  if (const auto at = text.find(own); at != std::string::npos) text.replace(at, own.size(), other);
  return text;
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
