// SPDX-License-Identifier: Apache-2.0
// A container's program that never is the same for long: threads and processes are born and end,
// each with threads of its own, and every one of them tries to get to each CPU there is, and to all
// of them.
//
//   restless CGROUP...     joins each CGROUP first, as kata-agent does it for a container's first
//   process
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr int kCpus = 8;
constexpr useconds_t kMilli = 1000;
constexpr useconds_t kLife = 500 * kMilli;
constexpr useconds_t kBetweenBirths = 300 * kMilli;

/// Where it succeeds the caller has moved. Its last word is that it may run anywhere.
void try_to_leave() {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int cpu = 0; cpu < kCpus; ++cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    CPU_SET(cpu, &all);
    ::sched_setaffinity(0, sizeof one, &one);
  }
  ::sched_setaffinity(0, sizeof all, &all);
}

void* live(void*) {
  try_to_leave();
  ::usleep(kLife);
  try_to_leave();
  return nullptr;
}

void bear_thread() {
  pthread_t thread{};
  if (::pthread_create(&thread, nullptr, live, nullptr) == 0) ::pthread_detach(thread);
}

void bear_process() {
  if (::fork() != 0) return;
  bear_thread();
  live(nullptr);
  ::_exit(0);
}

}  // namespace

int main() {
  for (;;) {
    bear_thread();
    bear_process();
    try_to_leave();
    ::usleep(kBetweenBirths);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;
  }
}
