// SPDX-License-Identifier: Apache-2.0
// What a daemon costs that watches many sandboxes while nothing happens: its resident memory, and
// the share of one CPU that it takes.
//
//   node_bench DAEMON VMM_LIKE [SANDBOXES] [SECONDS]
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/api.hpp"
#include "tests/bench/child.hpp"
#include "tests/bench/daemon_files.hpp"
#include "tests/bench/process_times.hpp"

namespace {

constexpr int kThreads = 10;  // of a sandbox; one of them the main thread

void add_sandbox(const ka::bench::Api& api, int number, int pid) {
  const std::string target = "/v1/sandboxes/s" + std::to_string(number);
  api.put(target, "{\"vmm_pid\":" + std::to_string(pid) + "}");
  api.put(target + "/containers/c", R"({"cpus":"0-1","exclusive":false})");
}

/// Each VMM holds two pipes of ours.
void allow_files() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: node_bench DAEMON VMM_LIKE [SANDBOXES] [SECONDS]\n", stderr);
    return 2;
  }
  const int sandboxes = argc > 3 ? std::atoi(argv[3]) : 500;
  const int seconds = argc > 4 ? std::atoi(argv[4]) : 60;
  allow_files();
  const ka::bench::DaemonFiles files;
  const ka::bench::Child daemon(files.command(argv[1], ka::bench::kNoSources));
  const ka::bench::Api api(files.path("api.sock"));
  std::vector<std::unique_ptr<ka::bench::Child>> vmms;
  for (int i = 0; i < sandboxes; ++i) {
    vmms.push_back(std::make_unique<ka::bench::Child>(
        std::vector<std::string>{argv[2], "4", std::to_string(kThreads - 5)}));
    if (!vmms.back()->wait_output()) return 1;
    add_sandbox(api, i, vmms.back()->pid());
  }
  // Everything is planned again when the sources that a start waits for have reported, or never
  // will.
  while (api.get("/v1/node").find("\"may_widen\":true") == std::string::npos) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  std::this_thread::sleep_for(std::chrono::seconds(5));  // the looks that follow an event
  const double before = ka::bench::cpu_time(daemon.pid());
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  const double busy = ka::bench::cpu_time(daemon.pid()) - before;
  const std::string status = "/proc/" + std::to_string(daemon.pid()) + "/status";
  std::printf("%d sandboxes of %d threads\n", sandboxes, kThreads);
  std::printf("resident memory  %.1f MB (at most 20)\n",
              ka::bench::number_in(status, "VmRSS:") / 1024);
  std::printf("idle             %.3f %% of one CPU over %d s (under 0.1)\n",
              busy / 1e9 / seconds * 100, seconds);
}
