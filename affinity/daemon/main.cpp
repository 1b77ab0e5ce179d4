#include <cstdio>

#include "affinity/daemon/daemon.hpp"
#include "affinity/daemon/options.hpp"

int main(int argc, char** argv) {
  const auto options = ka::daemon::parse(argc, argv);
  if (!options) return options.error();
  const auto ended = ka::daemon::run(*options);
  if (ended) return 0;
  std::fprintf(stderr, "kata-affinityd: %s\n", ended.error().message.c_str());
  return ended.error().code == ka::base::ErrorCode::kInvalid ? 2 : 1;
}
