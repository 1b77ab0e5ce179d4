// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/host/agent_url.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/unix_socket.hpp"
#include "guest-agent/protocol/limits.hpp"

namespace ka::guest {
namespace {

constexpr std::size_t kLongest = 4096;
constexpr const char* kQuestion =
    "GET /agent-url HTTP/1.1\r\nHost: shim\r\nConnection: close\r\n\r\n";

}  // namespace

std::vector<std::filesystem::path> management_sockets(const std::string& sandbox,
                                                      const std::filesystem::path& run) {
  // An id that is a path of its own would lead elsewhere.
  if (sandbox.empty() || sandbox.find('/') != std::string::npos || sandbox == "..") return {};
  constexpr const char* kName = "shim-monitor.sock";
  return {run / "vc/sbs" / sandbox / kName, run / "kata" / sandbox / kName};
}

std::string body_of(std::string_view answer) {
  const std::size_t end = answer.find("\r\n\r\n");
  if (end == std::string_view::npos || !answer.starts_with("HTTP/1.")) return {};
  if (answer.substr(8, 4) != " 200") return {};
  std::string_view body = answer.substr(end + 4);
  // Short answers of Go come whole, those in chunks begin with their length.
  if (answer.substr(0, end).find("chunked") != std::string_view::npos) {
    body.remove_prefix(std::min(body.find("\r\n") + 2, body.size()));
  }
  return std::string(body.substr(0, body.find_first_of("\r\n")));
}

AgentUrl::AgentUrl(boost::asio::io_context& io, const std::vector<std::filesystem::path>& sockets,
                   std::function<void(const std::string&)> found)
    : found_(std::move(found)), timer_(io) {
  for (const auto& path : sockets) {
    auto connected = base::connect_unix(path, SOCK_NONBLOCK);
    if (!connected) continue;
    socket_ = std::make_unique<rpc::Socket>(
        io, std::move(*connected),
        rpc::Socket::Events{[this](std::string_view bytes) { receive(bytes); },
                            [this](const std::string&) { end(body_of(answer_)); }});
    socket_->send(kQuestion);
    timer_.in(kDeadline, [this] { end(body_of(answer_)); });
    return;
  }
}

void AgentUrl::receive(std::string_view bytes) {
  answer_ += bytes;
  if (answer_.size() > kLongest) end({});
}

/// Whoever is told may end this object.
void AgentUrl::end(const std::string& url) {
  timer_.cancel();
  socket_.reset();
  const auto found = std::exchange(found_, {});
  if (found && !url.empty()) found(url);
}

}  // namespace ka::guest
