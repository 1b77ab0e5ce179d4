// SPDX-License-Identifier: Apache-2.0
// The answers of kata-affinity-helper, at a real unix socket, as a test decides them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/http/server.hpp"
#include "base/unix_socket.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::tests {

/// A state document; `unit` is what is left of kind unit, as JSON.
inline std::string quiet_document(const std::string& cpus, const std::string& unit = "",
                                  const std::string& problem = "") {
  return R"({"cpus":")" + cpus + R"(","kinds":[{"kind":"unit","found":4,"moved":4,"left":[)" +
         unit + R"(],"left_total":)" + (unit.empty() ? "0" : "1") +
         R"(,"problem":""}],"problem":")" + problem + "\"}";
}

/// On the test's own loop.
class FakeHelper {
 public:
  FakeHelper(boost::asio::io_context& io, const base::Clock& clock,
             const std::filesystem::path& socket)
      : listener_(base::listen_unix(socket).value()),
        server_(
            io, clock, listener_.get(),
            [this](const http::Request& request) {
              requests.push_back(request.method + ' ' + request.target + ' ' + request.body);
              return answer(request);
            },
            [](const std::string&) {}) {}

  /// The CPUs of each request, without its frame.
  std::vector<std::string> requested() const {
    std::vector<std::string> sets;
    for (const std::string& request : requests) {
      const std::string head = R"(POST /v1/quiet {"cpus":")";
      sets.push_back(request.starts_with(head)
                         ? request.substr(head.size(), request.size() - head.size() - 2)
                         : request);
    }
    return sets;
  }

  /// Does what it is asked for.
  static http::Response grant(const http::Request& request) {
    const std::string head = R"({"cpus":")";
    return {.body = quiet_document(
                request.body.substr(head.size(), request.body.size() - head.size() - 2))};
  }

  std::vector<std::string> requests;
  std::function<http::Response(const http::Request&)> answer = grant;

 private:
  base::Fd listener_;
  http::Server server_;
};

}  // namespace ka::tests
