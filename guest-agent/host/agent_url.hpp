// SPDX-License-Identifier: Apache-2.0
// Asks Kata's shim where its agent is: "/agent-url" of the management socket (kata-containers,
// shim_management.go; runtime-rs shim_mgmt/handlers.rs).
#pragma once

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/rpc/socket.hpp"
#include "base/rpc/timer.hpp"

namespace ka::guest {

/// Where the shims of Kata's two runtimes listen, below /run.
std::vector<std::filesystem::path> management_sockets(const std::string& sandbox,
                                                      const std::filesystem::path& run);

/// The body of an HTTP answer with status 200, one line; empty while it is not whole, and when it
/// is none.
std::string body_of(std::string_view answer);

/// One question. Asks from the loop; says nothing when nobody answers within a second.
class AgentUrl {
 public:
  AgentUrl(boost::asio::io_context& io, const std::vector<std::filesystem::path>& sockets,
           std::function<void(const std::string& url)> found);
  AgentUrl(const AgentUrl&) = delete;
  AgentUrl& operator=(const AgentUrl&) = delete;
  ~AgentUrl() = default;

 private:
  void receive(std::string_view bytes);
  void end(const std::string& url);

  std::function<void(const std::string&)> found_;
  rpc::Timer timer_;
  std::string answer_;
  std::unique_ptr<rpc::Socket> socket_;
};

}  // namespace ka::guest
