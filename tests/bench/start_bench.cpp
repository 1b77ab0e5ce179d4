// SPDX-License-Identifier: Apache-2.0
// How long nobody guards the node when the daemon is killed and started again: until it has read
// its state, placed the threads of its sandboxes, and answered a container runtime's Synchronize.
// Prints each part of each start, as the daemon logs it.
//
//   start_bench DAEMON VMM_LIKE [SANDBOXES] [STARTS]
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "tests/bench/api.hpp"
#include "tests/bench/child.hpp"
#include "tests/bench/daemon_files.hpp"
#include "tests/bench/process_times.hpp"
#include "tests/nri_runtime.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Vmms = std::vector<std::unique_ptr<ka::bench::Child>>;

constexpr int kPods = 100;  ///< without VMs, which the runtime reports

struct Node {
  ka::bench::DaemonFiles files;
  ka::tests::NriRuntime runtime{files.path("nri.sock")};
  std::string log = files.path("log");

  /// The log is all that a start writes.
  std::vector<std::string> command(const std::string& program) const {
    const std::string sources =
        "kubelet_state = \"\"\nnri_socket = \"" + files.path("nri.sock") + "\"\n";
    std::vector<std::string> words{"/bin/sh", "-c", "exec \"$@\" 2>\"$0\"", log};
    std::ranges::copy(files.command(program, sources, "info"), std::back_inserter(words));
    return words;
  }
};

/// "topology 1.2 ms, configuration 0.3 ms, ..."
std::string parts_in(const std::string& log) {
  const std::string text = ka::base::read_file(log).value_or("");
  const auto ready = text.find("topology ");
  const auto end = text.find(" total", ready);
  if (ready == std::string::npos || end == std::string::npos) std::exit(1);
  return text.substr(ready, end - ready) + " total";
}

/// "median 1.2 ms, max 3.4 ms"
std::string spread(std::vector<double> times) {
  std::ranges::sort(times);
  char text[64];
  std::snprintf(text, sizeof text, "median %.1f ms, max %.1f ms", times[times.size() / 2],
                times.back());
  return text;
}

void add_sandboxes(const Node& node, const char* program, int count, Vmms& vmms) {
  const ka::bench::Api api(node.files.path("api.sock"));
  for (int i = 0; i < count; ++i) {
    vmms.push_back(std::make_unique<ka::bench::Child>(std::vector<std::string>{program, "4", "5"}));
    if (!vmms.back()->wait_output()) std::exit(1);
    const std::string target = "/v1/sandboxes/s" + std::to_string(i);
    api.put(target, "{\"vmm_pid\":" + std::to_string(vmms.back()->pid()) + "}");
    api.put(target + "/containers/c", R"({"cpus":"0-1","exclusive":false})");
  }
}

/// Milliseconds: by the clock, and of that on a CPU.
struct Elapsed {
  double real = 0;
  double busy = 0;
};

/// The daemon is killed at the end.
Elapsed start(Node& node, const std::string& program) {
  std::error_code ignored;
  std::filesystem::remove(node.log, ignored);
  const auto began = Clock::now();
  const ka::bench::Child daemon(node.command(program));
  node.runtime.accept(ka::tests::many_pods(kPods));
  const std::chrono::duration<double, std::milli> real = Clock::now() - began;
  const Elapsed elapsed{real.count(), ka::bench::cpu_time(daemon.pid()) / 1e6};
  std::printf("%6.1f ms until Synchronize was answered (%.1f on a CPU); %s\n", elapsed.real,
              elapsed.busy, parts_in(node.log).c_str());
  ::kill(daemon.pid(), SIGKILL);
  return elapsed;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: start_bench DAEMON VMM_LIKE [SANDBOXES] [STARTS]\n", stderr);
    return 2;
  }
  const int sandboxes = argc > 3 ? std::atoi(argv[3]) : 100;
  const int starts = argc > 4 ? std::max(std::atoi(argv[4]), 1) : 10;
  Node node;
  Vmms vmms;
  {
    const ka::bench::Child first(node.command(argv[1]));
    node.runtime.accept(ka::tests::many_pods(kPods));
    add_sandboxes(node, argv[2], sandboxes, vmms);
    ::kill(first.pid(), SIGKILL);
  }
  std::vector<double> real, busy;
  for (int i = 0; i < starts; ++i) {
    const Elapsed elapsed = start(node, argv[1]);
    real.push_back(elapsed.real);
    busy.push_back(elapsed.busy);
  }
  std::printf("%d starts with %d sandboxes of 10 threads and %d pods: %s; on a CPU %s\n", starts,
              sandboxes, kPods, spread(real).c_str(), spread(busy).c_str());
}
