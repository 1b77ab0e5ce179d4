// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "base/clock.hpp"
#include "base/version/version.hpp"
#include "guest-agent/agent/first.hpp"
#include "guest-agent/agent/hook.hpp"
#include "guest-agent/agent/options.hpp"
#include "guest-agent/agent/show_affinity.hpp"

int main(int argc, char** argv) {
  using namespace ka::agent;
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    // The literal prefix matters: `guest-image check` searches it in the program's file.
    constexpr const char* kName = "kata-affinity-agent " KA_VERSION;
    return std::printf("%s (%s)\n", kName, ka::version::commit()) < 0 ? 1 : 0;
  }
  if (argc == 2 && std::strcmp(argv[1], "--help") == 0) {
    return std::fputs(kUsage, stdout) < 0 ? 1 : 0;
  }
  if (argc == 2 && std::strcmp(argv[1], "--show-affinity") == 0) {
    return show_affinity(Roots{}, stdout) ? 0 : 1;
  }
  const ka::base::Clock clock;
  if (::getpid() == 1) return run_first(clock, argv, Options{});
  const auto hook = argc > 1 ? hook_named(argv[1]) : std::nullopt;
  const int words = hook ? 1 : 0;
  const auto options = parse(argc - words, argv + words);
  if (!options) {
    std::fprintf(stderr, "kata-affinity-agent: %s (see --help)\n", options.error().c_str());
    return 2;
  }
  return hook ? run_hook(clock, *hook, *options) : run(*options);
}
