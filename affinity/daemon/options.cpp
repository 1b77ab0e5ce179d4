// SPDX-License-Identifier: Apache-2.0
#include "affinity/daemon/options.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <string>

#include "base/usage/usage.hpp"
#include "base/version/version.hpp"

namespace ka::daemon {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  kata-affinityd --check-config                     check the files\n"
    "  kata-affinityd --check-config --config new.toml   check one file\n"
    "  systemctl reload kata-affinityd                   apply a changed file";

void add_directory(CLI::App& app, const char* name, std::filesystem::path& value,
                   const char* meaning) {
  app.add_option(name, value, meaning)->type_name("DIR")->capture_default_str();
}

void declare(CLI::App& app, Options& options) {
  app.add_option("--config", options.config, "configuration.toml (default: the first of Kata's)")
      ->type_name("FILE");
  app.add_flag("--check-config", options.check_config, "check the configuration and exit");
  app.add_option("--socket", options.socket, "socket of the API")
      ->type_name("PATH")
      ->capture_default_str();
  app.add_option("--state-dir", options.state_dir, "overrides state_dir of the configuration")
      ->type_name("DIR");
  usage::add_topology(app, options.topology);
  add_directory(app, "--proc", options.roots.proc, "where proc is mounted");
  add_directory(app, "--debugfs", options.roots.debugfs, "where debugfs is mounted");
  add_directory(app, "--cgroup-root", options.roots.cgroup, "where cgroups are mounted");
  add_directory(app, "--run", options.roots.run, "run-time files of Kata and of the daemon");
}

}  // namespace

Expected<Options, int> parse(int argc, const char* const* argv) {
  CLI::App app("Keeps the threads of VM sandboxes on the CPUs that their containers own.",
               "kata-affinityd");
  usage::apply_style(app, std::string("kata-affinityd ") + version::text());
  app.footer(kExamples);
  Options options;
  declare(app, options);
  if (const auto status = usage::parse(app, argc, argv)) return unexpected(*status);
  return options;
}

}  // namespace ka::daemon
