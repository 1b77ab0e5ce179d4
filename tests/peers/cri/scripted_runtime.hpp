// SPDX-License-Identifier: Apache-2.0
// A container runtime that gives one response a connection, as it stands, and messages to fill it
// with.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/scripted_server.hpp"

namespace ka::tests {

/// ContainerStatusResponse of a container whose OCI spec has these CPU resources, as JSON.
std::string container_status(const std::string& cpu);
/// StatusResponse of containerd 1.7.
std::string runtime_status(bool systemd_cgroup);

class ScriptedRuntime {
 public:
  ScriptedRuntime(const std::filesystem::path& socket, std::vector<std::string> responses);

 private:
  ScriptedServer server_;
};

}  // namespace ka::tests
