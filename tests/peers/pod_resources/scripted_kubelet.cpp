// SPDX-License-Identifier: Apache-2.0
#include "tests/peers/pod_resources/scripted_kubelet.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <string_view>

#include "base/unix_socket.hpp"
#include "shim-ext/proto/pod_resources.pb.h"

namespace ka::tests {
namespace {

base::Fd listen_at(const std::filesystem::path& path) {
  base::Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = base::unix_address(path).value();
  ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  ::listen(listener.get(), 1);
  return listener;
}

void send_all(int peer, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(peer, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void wait_for_end(int peer) {
  char ignored[512];
  while (::read(peer, ignored, sizeof(ignored)) > 0) {
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
    : listener_(listen_at(socket)) {
  thread_ = std::thread([this, responses = std::move(responses)] { serve(responses); });
}

ScriptedKubelet::~ScriptedKubelet() {
  ::shutdown(listener_.get(), SHUT_RDWR);
  thread_.join();
}

void ScriptedKubelet::serve(const std::vector<std::string>& responses) {
  for (const std::string& response : responses) {
    const base::Fd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!peer) return;
    ++connections_;
    send_all(peer.get(), response);
    wait_for_end(peer.get());
  }
}

}  // namespace ka::tests
