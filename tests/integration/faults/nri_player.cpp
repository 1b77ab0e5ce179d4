// SPDX-License-Identifier: Apache-2.0
// A container runtime for a script, for one connection of NRI. It has a pod that is a VM, with a
// container in the shared pool, and another pod that owns a CPU, or not.
//
//   nri-player SOCKET VMM-PID SHARED-CPUS CPU owned|free
//
// Prints "ok" when the plugin has been told all of that, and after each line of standard input
// ("own", "disown") whose events the plugin has agreed to. Ends when the plugin leaves, or when
// standard input does.
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "tests/nri_runtime.hpp"

using namespace ka;

namespace {

namespace wire = proto::nri;

constexpr std::int64_t kPeriod = 100000;

wire::PodSandbox pod(const std::string& name, int pid) {
  wire::PodSandbox pod;
  pod.set_id(name);
  pod.set_uid("uid-" + name);
  pod.set_name(name);
  pod.set_namespace_("test");
  pod.set_pid(static_cast<std::uint32_t>(pid));
  return pod;
}

wire::Container container(const std::string& pod, const std::string& cpus, std::int64_t quota) {
  wire::Container container;
  container.set_id(pod + "-app");
  container.set_pod_sandbox_id(pod);
  container.set_name("app");
  auto* cpu = container.mutable_linux()->mutable_resources()->mutable_cpu();
  cpu->set_cpus(cpus);
  cpu->mutable_quota()->set_value(quota);
  cpu->mutable_period()->set_value(kPeriod);
  return container;
}

class Player {
 public:
  explicit Player(char** argv)
      : runtime_(argv[1]),
        guest_(pod("guest", std::atoi(argv[2]))),
        app_(container("guest", argv[3], -1)),
        owner_(pod("owner", static_cast<int>(::getpid()))),
        owning_(container("owner", argv[4], kPeriod)) {}

  void accept(bool owned) {
    wire::SynchronizeRequest all;
    *all.add_pods() = guest_;
    *all.add_containers() = app_;
    if (owned) {
      *all.add_pods() = owner_;
      *all.add_containers() = owning_;
    }
    runtime_.accept({all});
  }

  /// Whether the plugin agrees to all of it.
  bool own() {
    return send_pod("RunPodSandbox") && send("CreateContainer") && send("StartContainer") &&
           send("PostStartContainer");
  }

  bool disown() {
    return send("StopContainer") && send("RemoveContainer") && send_pod("RemovePodSandbox");
  }

 private:
  bool send_pod(const std::string& method) {
    wire::PodRequest request;
    *request.mutable_pod() = owner_;
    runtime_.call(method, request);
    return runtime_.answer().code == rpc::Code::kOk;
  }

  bool send(const std::string& method) {
    wire::ContainerRequest request;
    *request.mutable_pod() = owner_;
    *request.mutable_container() = owning_;
    runtime_.call(method, request);
    return runtime_.answer().code == rpc::Code::kOk;
  }

  tests::NriRuntime runtime_;
  wire::PodSandbox guest_;
  wire::Container app_;
  wire::PodSandbox owner_;
  wire::Container owning_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  Player player(argv);
  player.accept(std::string_view(argv[5]) == "owned");
  std::cout << "ok" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const bool agreed = line == "own" ? player.own() : player.disown();
    std::cout << (agreed ? "ok" : "refused") << std::endl;
  }
}
