// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <iostream>
#include <variant>

#include "affinity/cli/allocate/allocate.hpp"
#include "affinity/cli/command_line/options.hpp"
#include "affinity/cli/control/control.hpp"
#include "affinity/cli/doctor/doctor.hpp"
#include "affinity/cli/guest_image/guest_image.hpp"
#include "affinity/cli/managed/managed.hpp"
#include "affinity/cli/map/map.hpp"
#include "affinity/cli/plan/plan.hpp"
#include "affinity/cli/report/report.hpp"
#include "affinity/cli/selftest/selftest.hpp"
#include "affinity/cli/setup/setup.hpp"
#include "affinity/cli/status/status.hpp"
#include "affinity/cli/terminal/output.hpp"
#include "affinity/cli/topology/topology.hpp"

int main(int argc, char** argv) {
  using namespace ka::cli;
  const auto invocation = parse(argc, argv, std::cout, std::cerr);
  if (!invocation) return static_cast<int>(invocation.error());
  Output output(std::cout, std::cerr, invocation->json, [] { return screen_of(STDOUT_FILENO); });
  const Exit end = std::visit([&output](const auto& options) { return run(options, output); },
                              invocation->command);
  if (std::cout) return static_cast<int>(end);
  output.print_message("kata-affinityctl: standard output cannot be written");
  return static_cast<int>(Exit::kWrong);
}
