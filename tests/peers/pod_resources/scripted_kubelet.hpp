// SPDX-License-Identifier: Apache-2.0
// A server that gives one response a connection, as it stands, and messages to fill it with.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/scripted_server.hpp"

namespace ka::tests {

/// ListPodResourcesResponse: pod "ns/a" with container "app", which owns `cpus` and has two GPUs of
/// node 1.
std::string list_message(const std::vector<int>& cpus);
/// AllocatableResourcesResponse.
std::string allocatable_message(const std::vector<int>& cpus);

class ScriptedKubelet {
 public:
  /// An empty response: the connection stays open without one.
  ScriptedKubelet(const std::filesystem::path& socket, std::vector<std::string> responses);

  int connections() const { return connections_; }

 private:
  void serve(int peer, const std::string& response);

  std::atomic<int> connections_ = 0;
  ScriptedServer server_;
};

}  // namespace ka::tests
