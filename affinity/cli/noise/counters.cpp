// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/noise/counters.hpp"

#include <fmt/core.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <vector>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/client/interrupted.hpp"
#include "affinity/cli/client/sandbox_name.hpp"

namespace ka::cli::noise {
namespace {

namespace json = boost::json;

/// The node's counts, or those of one sandbox.
base::Result<json::object> query(const NoiseOptions& options) {
  const Daemon daemon(options.socket);
  const auto sandbox = find_sandbox(daemon, options.sandbox);
  if (!sandbox) return unexpected(sandbox.error());
  auto document = daemon.get(sandbox->empty() ? "/v1/node" : "/v1/sandboxes/" + encode(*sandbox));
  if (!document) return document;
  const json::value* found = document->if_contains("interruptions");
  if (found == nullptr) {
    return base::fail(base::ErrorCode::kUnavailable,
                      "the daemon does not count interruptions: it is of an older version");
  }
  return json::object{{"interruptions", *found}};
}

std::string row_of(const InterruptedCpu& cpu) {
  constexpr double kMillisecond = 1e6;
  const double seconds = cpu.count.seconds;
  return fmt::format(
      "{:<5} {:<32} {:>9.1f} {:>9} {:>9.1f} {:>12.2f} {:>12} {:>12}\n", cpu.cpu,
      fmt::format("vCPU {} of {}", cpu.vcpu, cpu.pod_name.empty() ? cpu.sandbox : cpu.pod_name),
      seconds, cpu.count.slices, seconds > 0 ? static_cast<double>(cpu.count.slices) / seconds : 0,
      static_cast<double>(cpu.count.nanoseconds) / kMillisecond, cpu.count.interrupts,
      cpu.count.passed_through);
}

}  // namespace

std::string describe_counters(const json::value& document) {
  if (const std::string problem = uncounted_of(document); !problem.empty()) {
    return "not counted: " + problem + '\n';
  }
  const auto cpus = interrupted_of(document);
  if (cpus.empty()) return "no vCPU is dedicated to a CPU\n";
  std::string text =
      fmt::format("{:<5} {:<32} {:>9} {:>9} {:>9} {:>12} {:>12} {:>12}\n", "CPU", "VCPU", "SECONDS",
                  "TIMES", "PER S", "OTHERS MS", "DEVICE IRQS", "OWN IRQS");
  for (const InterruptedCpu& cpu : cpus) text += row_of(cpu);
  return text;
}

Exit show_counters(const NoiseOptions& options, Output& output) {
  const auto document = query(options);
  if (!document) return output.fail(document.error());
  output.show(*document, [&document] { return describe_counters(*document); });
  return Exit::kDone;
}

}  // namespace ka::cli::noise
