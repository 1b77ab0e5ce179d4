// SPDX-License-Identifier: Apache-2.0
// How long a node with many pods keeps the daemon busy when a container runtime takes it in: until
// all of Synchronize is answered, and until the first event after it is (2 s, and the runtime
// throws us out); then what an event of one container costs beside so many others.
//
//   sync_bench DAEMON [PODS]

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/bench/nri_daemon.hpp"

namespace {

namespace wire = ka::proto::nri;

constexpr int kEvents = 1000;

/// The last pod's container gets another set: shared with everybody, or its own.
wire::UpdateContainerRequest update(int pod, const std::string& cpus) {
  const std::string number = std::to_string(pod);
  wire::UpdateContainerRequest request;
  request.mutable_pod()->set_id("pod" + number);
  request.mutable_pod()->set_uid("uid-" + number);
  request.mutable_pod()->set_pid(static_cast<std::uint32_t>(::getpid()));
  request.mutable_container()->set_id("container" + number);
  request.mutable_container()->set_pod_sandbox_id("pod" + number);
  request.mutable_container()->set_name("app");
  request.mutable_linux_resources()->mutable_cpu()->set_cpus(cpus);
  return request;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: sync_bench DAEMON [PODS]\n", stderr);
    return 2;
  }
  const int pods = argc > 2 ? std::atoi(argv[2]) : 3000;
  ka::bench::NriDaemon daemon(argv[1]);
  ka::tests::NriRuntime& runtime = daemon.runtime();
  const double longest = runtime.accept(ka::tests::many_pods(pods));
  const double first = runtime.call("Shutdown", wire::Empty()) / 1e6;
  std::printf(
      "%d pods: a part of Synchronize answered after %.3f s at most, the next call after %.3f s\n",
      pods, longest, first);
  std::vector<double> times;
  for (int i = 0; i < kEvents; ++i) {
    times.push_back(runtime.call("UpdateContainer", update(pods - 1, i % 2 == 0 ? "1" : "0")));
    runtime.call("PostUpdateContainer", update(pods - 1, {}));
  }
  std::ranges::sort(times);
  std::printf("an update of one container: median %.1f us, p99 %.1f us\n", times[kEvents / 2],
              times[kEvents * 99 / 100]);
}
