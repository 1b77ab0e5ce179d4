// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <iostream>
#include <variant>

#include "affinity/cli/commands.hpp"
#include "affinity/cli/options.hpp"
#include "affinity/cli/output.hpp"

int main(int argc, char** argv) {
  using namespace ka::cli;
  const auto invocation = parse(argc, argv, std::cout, std::cerr);
  if (!invocation) return static_cast<int>(invocation.error());
  Output output(std::cout, std::cerr, invocation->json, [] { return screen_of(STDOUT_FILENO); });
  const Exit end = std::visit([&output](const auto& options) { return run(options, output); },
                              invocation->command);
  if (std::cout) return static_cast<int>(end);
  output.note("kata-affinityctl: standard output cannot be written");
  return static_cast<int>(Exit::kWrong);
}
