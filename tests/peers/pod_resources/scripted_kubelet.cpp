// SPDX-License-Identifier: Apache-2.0
#include "tests/peers/pod_resources/scripted_kubelet.hpp"

#include <sys/socket.h>

#include <string_view>
#include <utility>

#include "shim-ext/proto/pod_resources.pb.h"

namespace ka::tests {
namespace {

void send_all(int peer, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(peer, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

}  // namespace

std::string list_message(const std::vector<int>& cpus) {
  proto::podresources::ListResponse response;
  auto& pod = *response.add_pod_resources();
  pod.set_namespace_("ns");
  pod.set_name("a");
  auto& container = *pod.add_containers();
  container.set_name("app");
  for (const int cpu : cpus) container.add_cpu_ids(cpu);
  auto& devices = *container.add_devices();
  devices.set_resource_name("nvidia.com/gpu");
  devices.add_device_ids("GPU-0");
  devices.add_device_ids("GPU-1");
  devices.mutable_topology()->add_nodes()->set_id(1);
  return response.SerializeAsString();
}

std::string allocatable_message(const std::vector<int>& cpus) {
  proto::podresources::AllocatableResponse response;
  for (const int cpu : cpus) response.add_cpu_ids(cpu);
  return response.SerializeAsString();
}

ScriptedKubelet::ScriptedKubelet(const std::filesystem::path& socket,
                                 std::vector<std::string> responses)
    : server_(socket, std::move(responses),
              [this](int peer, const std::string& response) { serve(peer, response); }) {}

void ScriptedKubelet::serve(int peer, const std::string& response) {
  ++connections_;
  send_all(peer, response);
  wait_for_end(peer);
}

}  // namespace ka::tests
