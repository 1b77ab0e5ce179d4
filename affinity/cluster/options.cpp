// SPDX-License-Identifier: Apache-2.0
#include "affinity/cluster/options.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "affinity/cluster/view/object_name.hpp"
#include "base/usage/usage.hpp"
#include "base/version/version.hpp"

namespace ka::cluster {
namespace {

std::string wrong_node(std::string& name) {
  return is_object_name(name) ? "" : '"' + name + "\" is not the name of a node";
}

void declare(CLI::App& app, Options& options, std::string& mark) {
  app.add_option("--node", options.node, "its node's name (default: NODE_NAME)")
      ->envname("NODE_NAME")
      ->required()
      ->type_name("NAME")
      ->check(CLI::Validator(wrong_node, ""));
  app.add_option("--socket", options.socket, "the daemon's socket for reads")
      ->type_name("PATH")
      ->capture_default_str();
  app.add_option("--account", options.account, "where the service account is mounted")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_option("--host", options.host, "API server (default: KUBERNETES_SERVICE_HOST)")
      ->envname("KUBERNETES_SERVICE_HOST")
      ->required()
      ->type_name("HOST");
  app.add_option("--port", options.port, "its port (default: KUBERNETES_SERVICE_PORT)")
      ->envname("KUBERNETES_SERVICE_PORT")
      ->required()
      ->type_name("PORT");
  usage::add_duration(app, "--interval", options.interval,
                      "between two polls of the daemon (default: 5s)");
  usage::add_duration(app, "--pace", options.pace, "between two writes, on average (default: 4s)");
  app.add_option("--mark-node", mark, "the node itself gets a taint, a label, or nothing")
      ->check(CLI::IsMember({"taint", "label", "none"}))
      ->capture_default_str();
  app.add_option("--nfd-file", options.nfd_file,
                 "leave label and taint to Node Feature Discovery: its feature file, which must "
                 "exist (default: NFD_FILE)")
      ->envname("NFD_FILE")
      ->type_name("PATH");
  app.add_flag("--classes", options.reports_classes,
               "send the daemon the classes that pods request by annotation (mode managed)");
  app.add_flag("--withdraw", options.withdraws, "remove conditions, label and taint, and wait");
}

}  // namespace

Expected<Options, int> parse(int argc, const char* const* argv) {
  CLI::App app(
      "Reports to the API server what kata-affinityd of a node says: events and a condition of "
      "pods, label and taint of the node.",
      "kata-affinity-reporter");
  usage::apply_style(app, std::string("kata-affinity-reporter ") + version::text());
  Options options;
  std::string mark = "taint";
  declare(app, options, mark);
  if (const auto status = usage::parse(app, argc, argv)) return unexpected(*status);
  options.marks_node = mark != "none";
  options.taints = mark == "taint";
  return options;
}

}  // namespace ka::cluster
