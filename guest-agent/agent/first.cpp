// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/first.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "guest-agent/agent/hierarchy.hpp"

namespace ka::agent {
namespace {

using namespace std::chrono_literals;

/// A guest without cgroups is served as well, only later.
constexpr auto kTimeout = 60s;
/// Nobody else starts it again.
constexpr auto kPause = 1s;

/// kata-agent and systemd mount /proc, /sys and /run before the cgroups.
void wait_for_mounts(const base::Clock& clock, const Options& options) {
  const auto until = clock.now() + kTimeout;
  while (find_hierarchy(options.roots).kind == CgroupKind::kNone && clock.now() < until) {
    clock.sleep(20ms);
  }
}

}  // namespace

int run_first(const base::Clock& clock, char* const* argv, const Options& options) {
  const pid_t agent = ::fork();
  if (agent < 0) std::perror("kata-affinity-agent: fork");
  if (agent == 0) {
    ::setsid();
    wait_for_mounts(clock, options);
    while (run(options) != 0) clock.sleep(kPause);
    ::_exit(0);
  }
  // In the order in which Linux tries them (init/main.c).
  for (const char* program : {"/init", "/sbin/init", "/etc/init", "/bin/init", "/bin/sh"}) {
    std::string name = program;
    std::vector<char*> words{name.data()};
    for (char* const* word = argv + 1; *word != nullptr; ++word) words.push_back(*word);
    words.push_back(nullptr);
    ::execv(program, words.data());
  }
  std::perror("kata-affinity-agent: no init program to start");
  return 1;
}

}  // namespace ka::agent
