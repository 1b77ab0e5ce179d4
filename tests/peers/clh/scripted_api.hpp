// SPDX-License-Identifier: Apache-2.0
// A Cloud Hypervisor's API that answers what a test says, one connection after the other.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/scripted_server.hpp"

namespace ka::tests {

/// VmInfo with so many vCPUs.
std::string vm_info(int vcpus);
/// An answer as Cloud Hypervisor's micro_http writes it.
std::string http_answer(int status, const std::string& body);

class ScriptedApi {
 public:
  /// One text a connection, sent in pieces once the question is whole; an empty one: the client
  /// is left waiting until it hangs up.
  ScriptedApi(const std::filesystem::path& socket, std::vector<std::string> answers);

  /// What was asked; to be read when the client is done.
  std::vector<std::string> questions;

 private:
  void serve(int peer, const std::string& answer);

  ScriptedServer server_;
};

}  // namespace ka::tests
