// SPDX-License-Identifier: Apache-2.0
#include "affinity/daemon/options.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <string>

#include "base/version/version.hpp"

namespace ka::daemon {
namespace {

constexpr int kWrongUsage = 2;
constexpr const char* kExamples =
    "Examples:\n"
    "  kata-affinityd --check-config                      check the configuration\n"
    "  kata-affinityd --config /tmp/try.toml --socket /tmp/try.sock\n"
    "  systemctl reload kata-affinityd                    apply a changed configuration";

}  // namespace

Expected<Options, int> parse(int argc, const char* const* argv) {
  CLI::App app("Keeps the threads of VM sandboxes on the CPUs that their containers own.",
               "kata-affinityd");
  app.set_version_flag("--version", std::string("kata-affinityd ") + version::text());
  app.footer(kExamples);
  app.failure_message([](const CLI::App* failed, const CLI::Error& error) {
    return failed->get_name() + ": " + error.what() + " (see --help)\n";
  });
  Options options;
  app.add_option("--config", options.config,
                 "configuration.toml with [affinity] (default: the first of Kata's)");
  app.add_flag("--check-config", options.check_config, "check the configuration and exit");
  app.add_option("--socket", options.socket, "socket of the API")->capture_default_str();
  app.add_option("--state-dir", options.state_dir, "overrides state_dir of the configuration");
  app.add_option("--topology", options.topology,
                 "host, synthetic:DESCRIPTION, or a file of hwloc XML or JSON")
      ->capture_default_str();
  app.add_option("--proc", options.roots.proc, "where proc is mounted")->capture_default_str();
  app.add_option("--debugfs", options.roots.debugfs, "where debugfs is mounted")
      ->capture_default_str();
  app.add_option("--cgroup-root", options.roots.cgroup, "where cgroups are mounted")
      ->capture_default_str();
  app.add_option("--run", options.roots.run, "directory of Kata's and the daemon's run-time files")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::Error& stop) {
    return unexpected(app.exit(stop) == 0 ? 0 : kWrongUsage);
  }
  return options;
}

}  // namespace ka::daemon
