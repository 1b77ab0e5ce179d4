// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/options.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "base/usage/usage.hpp"
#include "base/version/version.hpp"

namespace ka::helper {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  systemctl enable --now kata-affinity-helper.socket   the daemon starts it\n"
    "  kata-affinity-helper --restore                       restore everything";

void declare(CLI::App& app, Options& options) {
  app.add_option("--config", options.config, "configuration.toml (default: the first of Kata's)")
      ->type_name("FILE");
  app.add_option("--socket", options.socket, "where to listen (default: the socket of its unit)")
      ->type_name("PATH");
  app.add_option("--state", options.state, "where it records what it changes")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_flag("--restore", options.restore, "restore everything that was changed, and exit");
  usage::add_topology(app, options.topology);
  app.add_option("--proc", options.roots.proc, "where proc is mounted")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_option("--sys", options.roots.sys, "where sysfs is mounted")
      ->type_name("DIR")
      ->capture_default_str();
}

}  // namespace

Expected<Options, int> parse(int argc, const char* const* argv) {
  CLI::App app("Keeps interrupts, kernel threads and services off the CPUs of containers.",
               "kata-affinity-helper");
  usage::apply_style(app, std::string("kata-affinity-helper ") + version::text());
  app.footer(kExamples);
  Options options;
  declare(app, options);
  if (const auto status = usage::parse(app, argc, argv)) return unexpected(*status);
  return options;
}

}  // namespace ka::helper
