// SPDX-License-Identifier: Apache-2.0
#include "tests/peers/cri/scripted_runtime.hpp"

#include <sys/socket.h>

#include <utility>

#include "shim-ext/proto/cri.pb.h"

namespace ka::tests {

std::string container_status(const std::string& cpu) {
  proto::cri::ContainerStatusResponse response;
  (*response.mutable_info())["info"] =
      R"({"pid":7,"runtimeSpec":{"linux":{"resources":{"cpu":)" + cpu + "}}}}";
  return response.SerializeAsString();
}

std::string runtime_status(bool systemd_cgroup) {
  proto::cri::StatusResponse response;
  (*response.mutable_info())["config"] =
      std::string(R"({"containerd":{"runtimes":{"runc":{"options":{"SystemdCgroup":)") +
      (systemd_cgroup ? "true" : "false") + R"(}}}},"sandboxImage":"registry.k8s.io/pause:3.8"})";
  return response.SerializeAsString();
}

ScriptedRuntime::ScriptedRuntime(const std::filesystem::path& socket,
                                 std::vector<std::string> responses)
    : server_(socket, std::move(responses), [](int peer, const std::string& response) {
        ::send(peer, response.data(), response.size(), MSG_NOSIGNAL);
        wait_for_end(peer);
      }) {}

}  // namespace ka::tests
