// SPDX-License-Identifier: Apache-2.0
// A server that gives one response a connection, as it stands, and messages to fill it with.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.hpp"

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
  ScriptedKubelet(const ScriptedKubelet&) = delete;
  ScriptedKubelet& operator=(const ScriptedKubelet&) = delete;
  ~ScriptedKubelet();

  int connections() const { return connections_; }

 private:
  void serve(const std::vector<std::string>& responses);

  base::Fd listener_;
  std::atomic<int> connections_ = 0;
  std::thread thread_;
};

}  // namespace ka::tests
