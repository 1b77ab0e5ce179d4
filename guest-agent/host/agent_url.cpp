// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/host/agent_url.hpp"

#include <utility>

#include "base/unix_socket.hpp"
#include "guest-agent/protocol/limits.hpp"

namespace ka::guest {
namespace {

constexpr int kGood = 200;

}  // namespace

std::vector<std::filesystem::path> management_sockets(const std::string& sandbox,
                                                      const std::filesystem::path& run) {
  // An id that is a path of its own would lead elsewhere.
  if (sandbox.empty() || sandbox.find('/') != std::string::npos || sandbox == "..") return {};
  constexpr const char* kName = "shim-monitor.sock";
  return {run / "vc/sbs" / sandbox / kName, run / "kata" / sandbox / kName};
}

AgentUrl::AgentUrl(boost::asio::io_context& io, const base::Clock& clock,
                   const std::vector<std::filesystem::path>& sockets,
                   std::function<void(const std::string&)> found)
    : found_(std::move(found)) {
  for (const auto& path : sockets) {
    auto connected = base::connect_unix(path);
    if (!connected) continue;
    query_.emplace(io, clock, std::move(*connected), http::Request{"GET", "/agent-url", {}},
                   kDeadline,
                   [this](const base::Result<http::Response>& response) { record(response); });
    return;
  }
}

/// One line, with or without its end.
void AgentUrl::record(const base::Result<http::Response>& response) {
  if (!response || response->status != kGood) return;
  const std::string url = response->body.substr(0, response->body.find_first_of("\r\n"));
  const auto found = std::exchange(found_, {});
  if (!url.empty()) found(url);
}

}  // namespace ka::guest
