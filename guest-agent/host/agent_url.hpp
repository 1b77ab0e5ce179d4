// SPDX-License-Identifier: Apache-2.0
// Queries Kata's shim for its agent's address: "/agent-url" of the management socket
// (kata-containers, shim_management.go; runtime-rs shim_mgmt/handlers.rs).
#pragma once

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/http/query.hpp"

namespace ka::guest {

/// Where the shims of Kata's two runtimes listen, below /run.
std::vector<std::filesystem::path> management_sockets(const std::string& sandbox,
                                                      const std::filesystem::path& run);

/// One request, sent from the loop. Without an answer within a second, `found` is not called.
/// `found` may destroy it.
class AgentUrl {
 public:
  AgentUrl(boost::asio::io_context& io, const base::Clock& clock,
           const std::vector<std::filesystem::path>& sockets,
           std::function<void(const std::string& url)> found);
  AgentUrl(const AgentUrl&) = delete;
  AgentUrl& operator=(const AgentUrl&) = delete;
  ~AgentUrl() = default;

 private:
  void record(const base::Result<http::Response>& response);

  std::function<void(const std::string&)> found_;
  std::optional<http::Query> query_;
};

}  // namespace ka::guest
