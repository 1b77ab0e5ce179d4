// SPDX-License-Identifier: Apache-2.0
// How long it takes from an API call until the last thread of a sandbox is pinned and read again,
// against a bare loop in the same run that for each thread reads its start time, sets its affinity
// and reads it back.
//
//   pin_bench DAEMON VMM_LIKE [ROUNDS]
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "affinity/host/affinity_calls.hpp"
#include "base/process.hpp"
#include "tests/bench/api.hpp"
#include "tests/bench/child.hpp"
#include "tests/bench/daemon_files.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Micros = std::chrono::duration<double, std::micro>;

constexpr int kThreads = 20;  // one of them the main thread

double percentile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

template <typename Work>
double micros(Work work) {
  const auto start = Clock::now();
  work();
  return Micros(Clock::now() - start).count();
}

void bare_loop(int pid, const ka::policy::CpuSet& cpus) {
  const ka::base::ProcFs proc;
  ka::host::KernelAffinityCalls calls;
  const auto tids = proc.threads(pid);
  for (const int tid : *tids) {
    if (!proc.stat(pid, tid) || !calls.set({pid, tid, 0}, cpus) || !calls.get(tid)) std::exit(1);
  }
}

void report(const char* name, const std::vector<double>& times) {
  std::printf("%-28s median %8.1f us   p99 %8.1f us\n", name, percentile(times, 0.5),
              percentile(times, 0.99));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: pin_bench DAEMON VMM_LIKE [ROUNDS]\n", stderr);
    return 2;
  }
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 500;
  const ka::bench::DaemonFiles files;
  const ka::bench::Child vmm({argv[2], "16", std::to_string(kThreads - 17)});
  vmm.wait_output();
  const ka::bench::Child daemon(files.command(argv[1], ka::bench::kNoSources));
  const ka::bench::Api api(files.path("api.sock"));
  api.put("/v1/sandboxes/bench", "{\"vmm_pid\":" + std::to_string(vmm.pid()) + "}");
  std::vector<double> through_api, bare;
  for (int i = 0; i < rounds; ++i) {
    const std::string cpu = i % 2 == 0 ? "0" : "1";
    through_api.push_back(micros([&] {
      api.put("/v1/sandboxes/bench/containers/c", R"({"cpus":")" + cpu + R"(","exclusive":false})");
    }));
    // The other CPU and back, so that both halves change every mask.
    bare.push_back(micros([&] { bare_loop(vmm.pid(), {i % 2 == 0 ? 1 : 0}); }));
    bare_loop(vmm.pid(), {i % 2 == 0 ? 0 : 1});
  }
  std::printf("%d threads, %d rounds\n", kThreads, rounds);
  report("API call to last re-read", through_api);
  report("bare loop", bare);
  std::printf("ratio of the medians %.2f (at most 3)\n",
              percentile(through_api, 0.5) / percentile(bare, 0.5));
}
