#include <cstdio>
#include <cstring>

#include "guest-agent/agent/options.hpp"

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    return std::puts("kata-affinity-agent " KA_VERSION) < 0 ? 1 : 0;
  }
  if (argc == 2 && std::strcmp(argv[1], "--help") == 0) {
    return std::fputs(ka::agent::kUsage, stdout) < 0 ? 1 : 0;
  }
  const auto options = ka::agent::parse(argc, argv);
  if (!options) {
    std::fputs("kata-affinity-agent: wrong arguments (see --help)\n", stderr);
    return 2;
  }
  return ka::agent::run(*options);
}
