// containerd-shim-kata-affinity-v2: containerd's runtime_type "io.containerd.kata-affinity.v2".
#include <cstdio>
#include <string>
#include <vector>

#include "shim-ext/proxy/program.hpp"
#include "shim-ext/proxy/settings.hpp"
#include "shim-ext/proxy/start.hpp"

using namespace ka;

namespace {

int refuse(const base::Error& error) {
  std::fprintf(stderr, "containerd-shim-kata-affinity-v2: %s\n", error.message.c_str());
  return 1;
}

}  // namespace

// containerd puts the action last (pkg/shim/util.go, Command). All but `start` is the real shim's
// own business.
int main(int count, char** values) {
  const std::vector<std::string> arguments(values + 1, values + count);
  const proxy::Settings settings = proxy::read_settings();
  const auto program = proxy::find_program(settings.real_shim);
  if (!program) return refuse(program.error());
  if (!arguments.empty() && arguments.back() == "start") {
    return proxy::start(*program, arguments, settings);
  }
  return refuse(proxy::become(*program, arguments));
}
