// SPDX-License-Identifier: Apache-2.0
// How long a container runtime waits for the daemon's answers, seen from the runtime's side of the
// socket: to an update that takes no CPU from any thread, to one that does, and, to compare, to a
// call that the daemon answers without looking at it. First with both ends on one CPU, which is the
// time that the work takes, and a loop that takes as long and calls nothing: its p99 is what the
// machine alone adds to such a call; then on all CPUs, where idle ones have to wake up for each
// call.
//
//   nri_bench DAEMON VMM_LIKE [ROUNDS [SANDBOXES]]

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "shim-ext/proto/nri.pb.h"
#include "tests/bench/nri_daemon.hpp"

namespace {

namespace wire = ka::proto::nri;

constexpr double kMost = 100;  // microseconds, p99

/// With `owned`, a quota of as many CPUs: the container owns them.
wire::UpdateContainerRequest update(const std::string& pod, int pid, const std::string& cpus,
                                    bool owned = false) {
  wire::UpdateContainerRequest request;
  request.mutable_pod()->set_id(pod);
  request.mutable_pod()->set_uid(pod + "-uid");
  request.mutable_pod()->set_name(pod);
  request.mutable_pod()->set_pid(static_cast<std::uint32_t>(pid));
  request.mutable_container()->set_id(pod + "-app");
  request.mutable_container()->set_name("app");
  request.mutable_container()->set_pod_sandbox_id(pod);
  auto* cpu = request.mutable_linux_resources()->mutable_cpu();
  cpu->set_cpus(cpus);
  cpu->mutable_period()->set_value(100000);
  cpu->mutable_quota()->set_value(owned ? 100000 : -1);
  return request;
}

/// What the runtime has afterwards: the container's own spec.
wire::UpdateContainerRequest post(const std::string& pod, int pid, const std::string& cpus,
                                  bool owned = false) {
  wire::UpdateContainerRequest request = update(pod, pid, cpus, owned);
  *request.mutable_container()->mutable_linux()->mutable_resources() = request.linux_resources();
  request.clear_linux_resources();
  return request;
}

double percentile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

struct Figures {
  double median = 0, p99 = 0;
};

Figures report(const char* name, const std::vector<double>& times) {
  const Figures figures{percentile(times, 0.5), percentile(times, 0.99)};
  std::printf("%-46s median %7.1f us   p99 %7.1f us\n", name, figures.median, figures.p99);
  return figures;
}

double microseconds_of_loop(long steps) {
  const auto start = std::chrono::steady_clock::now();
  for (long step = 0; step < steps; ++step) {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // or the loop would be removed
  }
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

/// A loop that takes `microseconds`, `rounds` times.
std::vector<double> loop_for(double microseconds, int rounds) {
  constexpr long kSteps = 1'000'000;
  double shortest = microseconds_of_loop(kSteps);
  for (int i = 0; i < 20; ++i) shortest = std::min(shortest, microseconds_of_loop(kSteps));
  const auto steps = static_cast<long>(kSteps / shortest * microseconds);
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) times.push_back(microseconds_of_loop(steps));
  return times;
}

struct Programs {
  std::string daemon, vmm_like;
};

/// What narrows nothing: the figures with the worst p99, in microseconds.
Figures measure(const Programs& programs, int rounds, int sandboxes) {
  // In the shared pool the other threads would have to leave each CPU that gets an owner.
  ka::bench::NriDaemon daemon(programs.daemon, "housekeeping = \"sandbox\"\n");
  ka::tests::NriRuntime& runtime = daemon.runtime();
  runtime.accept();
  std::deque<ka::bench::Child> vmms;
  const ka::bench::Child pause({"/bin/cat"});
  const auto pod = [](int i) { return "pod" + std::to_string(i); };
  for (int i = 0; i < sandboxes; ++i) {
    vmms.emplace_back(std::vector<std::string>{programs.vmm_like, "4", "4"}).wait_output();
    runtime.call("UpdateContainer", update(pod(i), vmms.back().pid(), "0"));
    runtime.call("PostUpdateContainer", post(pod(i), vmms.back().pid(), "0"));
  }
  std::vector<double> bare, same, runc, owner, wider, narrower;
  const auto container_seen = [&](const std::string& name, int pid, const std::string& cpus) {
    return runtime.call("UpdateContainer", update(name, pid, cpus));
  };
  const auto afterwards = [&](const std::string& name, int pid, const std::string& cpus,
                              bool owned = false) {
    runtime.call("PostUpdateContainer", post(name, pid, cpus, owned));
    runtime.call("Shutdown", wire::Empty());  // what follows an answer is done by now
  };
  for (int i = 0; i < rounds; ++i) {
    const int n = i % sandboxes;
    const int pid = vmms[static_cast<std::size_t>(n)].pid();
    bare.push_back(runtime.call("Shutdown", wire::Empty()));
    same.push_back(container_seen(pod(n), pid, "0"));
    runc.push_back(container_seen("runc", pause.pid(), i % 2 == 0 ? "0" : "0-1"));
    owner.push_back(runtime.call("UpdateContainer", update("owner", pause.pid(), "1", i % 2 == 0)));
    afterwards("owner", pause.pid(), "1", i % 2 == 0);
    wider.push_back(container_seen(pod(n), pid, "0-1"));
    afterwards(pod(n), pid, "0-1");
    narrower.push_back(container_seen(pod(n), pid, "0"));
    afterwards(pod(n), pid, "0");
  }
  report("a call that is not looked at", bare);
  const std::vector<Figures> narrow_nothing{
      report("an update that changes nothing", same), report("an update of a runc pod", runc),
      report("a runc pod owns a CPU that no sandbox uses", owner),
      report("an update that only widens", wider)};
  report("an update that narrows, done before the answer", narrower);
  return std::ranges::max(narrow_nothing, {}, &Figures::p99);
}

/// For this process and those that it starts.
cpu_set_t stay_on_one_cpu() {
  cpu_set_t all;
  if (::sched_getaffinity(0, sizeof all, &all) != 0) std::exit(1);
  std::size_t cpu = CPU_SETSIZE - 1;
  while (!CPU_ISSET(cpu, &all)) --cpu;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  if (::sched_setaffinity(0, sizeof one, &one) != 0) std::exit(1);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: nri_bench DAEMON VMM_LIKE [ROUNDS [SANDBOXES]]\n", stderr);
    return 2;
  }
  const Programs programs{argv[1], argv[2]};
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 2000;
  const int sandboxes = argc > 4 ? std::atoi(argv[4]) : 8;
  std::printf("%d rounds, %d sandboxes of 9 threads; on one CPU:\n", rounds, sandboxes);
  const cpu_set_t all = stay_on_one_cpu();
  const Figures worst = measure(programs, rounds, sandboxes);
  report("a loop as long as the worst, without a call", loop_for(worst.median, rounds));
  std::printf("what narrows nothing: p99 %.1f us (at most %.0f)\n", worst.p99, kMost);
  std::printf("on all CPUs:\n");
  if (::sched_setaffinity(0, sizeof all, &all) != 0) return 1;
  measure(programs, rounds, sandboxes);
}
