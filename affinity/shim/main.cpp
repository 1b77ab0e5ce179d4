// SPDX-License-Identifier: Apache-2.0
// containerd-shim-kata-affinity-v2: containerd's runtime_type "io.containerd.kata-affinity.v2".
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "affinity/shim/settings.hpp"
#include "base/clock.hpp"
#include "base/version/version.hpp"
#include "shim-ext/proxy/orphan.hpp"
#include "shim-ext/proxy/program.hpp"
#include "shim-ext/proxy/shared_pool.hpp"
#include "shim-ext/proxy/spec.hpp"
#include "shim-ext/proxy/start.hpp"

using namespace ka;

namespace {

/// For operators; containerd never passes it.
constexpr const char* kUsage =
    "Runs in front of Kata's shim and reports the CPUs of its containers to kata-affinityd.\n"
    "\n"
    "Started by containerd, not by hand. For container runtimes without NRI.\n"
    "\n"
    "Examples:\n"
    "  kata-affinityctl setup --proxy                     create the containerd runtime\n"
    "  runtime_type = \"io.containerd.kata-affinity.v2\"    in a runtime of containerd's "
    "config.toml\n"
    "\n"
    "Environment:\n"
    "  KATA_AFFINITY_CONFIG   configuration file, in place of the first that Kata would find\n"
    "  KATA_AFFINITY_SOCKET   the daemon's socket, in place of /run/kata-affinity/api.sock\n";

int refuse(const base::Error& error) {
  std::fprintf(stderr, "containerd-shim-kata-affinity-v2: %s\n", error.message.c_str());
  return 1;
}

/// Of `delete`: named by an argument, else the working directory.
std::string bundle_of(const std::vector<std::string>& arguments) {
  const auto name = std::ranges::find(arguments, "-bundle");
  const bool named = name != arguments.end() && name + 1 != arguments.end();
  return named ? *(name + 1) : ".";
}

}  // namespace

// containerd puts the action last (pkg/shim/util.go, Command). All but `start` is the real shim's
// own business.
int main(int count, char** values) {
  const std::vector<std::string> arguments(values + 1, values + count);
  if (count == 2 && arguments.front() == "--help") return std::fputs(kUsage, stdout) < 0 ? 1 : 0;
  // The real shim's own version follows.
  if (count == 2 && arguments.front() == "--version") {
    std::printf("containerd-shim-kata-affinity-v2 %s\n", version::text());
    std::fflush(stdout);
  }
  proxy::Settings settings = shim::read_settings();
  proxy::SharedPool pool(settings.kubelet_state);
  const bool starts = !arguments.empty() && arguments.back() == "start";
  std::error_code no_directory;  // then the pod is not known
  if (starts) pool.set_pod(proxy::pod_of_bundle(std::filesystem::current_path(no_directory)));
  const auto confined = starts ? pool.confine_with_own() : pool.confine();
  if (!confined) settings.input_error = confined.error().message;
  const auto program = proxy::find_program(settings.real_shim);
  if (!program) return refuse(program.error());
  if (starts) return proxy::start(base::Clock(), *program, arguments, settings, pool);
  if (!arguments.empty() && arguments.back() == "delete") {
    proxy::end_orphan(bundle_of(arguments));
  }
  return refuse(proxy::become(*program, arguments));
}
