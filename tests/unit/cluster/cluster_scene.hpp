// SPDX-License-Identifier: Apache-2.0
// An API server that gives a test's responses, and a node that asks it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "affinity/cluster/api_server.hpp"
#include "tests/test_clock.hpp"
#include "tests/tls_server.hpp"

namespace ka::tests {

/// A pod of a list or a watch.
inline std::string pod_json(const std::string& uid, const std::string& version) {
  return R"({"metadata":{"uid":")" + uid + R"(","namespace":"shop","name":"cart-)" + uid +
         R"(","resourceVersion":")" + version + "\"}}";
}

inline std::string list_json(const std::string& version, const std::string& items = "") {
  return R"({"metadata":{"resourceVersion":")" + version + R"("},"items":[)" + items + "]}";
}

/// A line of a watch.
inline std::string event_json(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}\n";
}

inline std::string status_json(const std::string& message) {
  return R"({"kind":"Status","status":"Failure","message":")" + message + "\"}";
}

class ClusterScene {
 public:
  explicit ClusterScene(std::vector<TlsAnswer> answers)
      : peer_(certificate_, std::move(answers)),
        server(clock, {"127.0.0.1", peer_.port()}, cluster::Account(dir.path()), "n1", true) {
    certificate_.write(dir.path() / "ca.crt");
    dir.write("token", "secret\n");
  }

  /// "GET /api/v1/...", of each request.
  std::vector<std::string> targets() const {
    std::vector<std::string> lines;
    for (const std::string& request : peer_.requests()) {
      lines.push_back(request.substr(0, request.find(" HTTP/")));
    }
    return lines;
  }
  std::vector<std::string> requests() const { return peer_.requests(); }

  TempDir dir;
  TestClock clock;

 private:
  Certificate certificate_{"IP:127.0.0.1"};
  TlsServer peer_;

 public:
  cluster::ApiServer server;
};

}  // namespace ka::tests
