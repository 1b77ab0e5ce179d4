// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <iostream>
#include <variant>

#include "affinity/cli/allocate/allocate.hpp"
#include "affinity/cli/command_line/options.hpp"
#include "affinity/cli/control/control.hpp"
#include "affinity/cli/doctor/doctor.hpp"
#include "affinity/cli/guest_image/guest_image.hpp"
#include "affinity/cli/kubectl/plugin.hpp"
#include "affinity/cli/managed/managed.hpp"
#include "affinity/cli/map/map.hpp"
#include "affinity/cli/noise/noise.hpp"
#include "affinity/cli/plan/plan.hpp"
#include "affinity/cli/report/report.hpp"
#include "affinity/cli/selftest/selftest.hpp"
#include "affinity/cli/setup/setup.hpp"
#include "affinity/cli/status/status.hpp"
#include "affinity/cli/terminal/output.hpp"
#include "affinity/cli/topology/topology.hpp"

namespace {

using namespace ka::cli;

int finish(int status, Output& output) {
  if (std::cout) return status;
  return static_cast<int>(
      output.fail({ka::base::ErrorCode::kInvalid, "standard output cannot be written", 0}));
}

int run_plugin(int argc, char** argv) {
  const auto options = kubectl::parse_plugin(argc, argv, std::cout, std::cerr);
  if (!options) return static_cast<int>(options.error());
  Output output(
      std::cout, std::cerr, options->json, [] { return screen_of(STDOUT_FILENO); },
      "kubectl affinity");
  return finish(kubectl::run_plugin(*options, output), output);
}

}  // namespace

int main(int argc, char** argv) {
  if (kubectl::is_plugin(argc > 0 ? argv[0] : nullptr)) return run_plugin(argc, argv);
  const auto invocation = parse(argc, argv, std::cout, std::cerr);
  if (!invocation) return static_cast<int>(invocation.error());
  Output output(std::cout, std::cerr, invocation->json, [] { return screen_of(STDOUT_FILENO); });
  const Exit end = std::visit([&output](const auto& options) { return run(options, output); },
                              invocation->command);
  return finish(static_cast<int>(end), output);
}
