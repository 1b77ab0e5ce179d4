// SPDX-License-Identifier: Apache-2.0
// The command `measure`.
#include <fmt/core.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/client/sandbox_name.hpp"
#include "affinity/cli/status/status.hpp"
#include "base/json/lookup.hpp"

namespace ka::cli {
namespace {

namespace json = boost::json;

double micros_of(const json::value& vcpu, std::string_view name) { return real_of(vcpu, name); }

std::string row(const json::value& vcpu) {
  return fmt::format(
      "{:>4}  {:<12} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9.1f}\n", number_of(vcpu, "vcpu"),
      text_of(vcpu, "cpus") + (flag_of(vcpu, "dedicated") ? " *" : ""), number_of(vcpu, "samples"),
      micros_of(vcpu, "p50_us"), micros_of(vcpu, "p90_us"), micros_of(vcpu, "p99_us"),
      micros_of(vcpu, "p999_us"), micros_of(vcpu, "max_us"), micros_of(vcpu, "stolen_us") / 1000);
}

std::string describe_latencies(const json::value& result) {
  std::string text =
      fmt::format("{:>4}  {:<12} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9}\n", "vCPU", "CPUs",
                  "wake-ups", "p50 us", "p90", "p99", "p99.9", "max", "stolen ms");
  for (const json::value& vcpu : array_of(result, "vcpus")) text += row(vcpu);
  text += "* dedicated\n";
  if (!flag_of(result, "realtime")) {
    text += "SCHED_FIFO was refused in the guest: waiting for its own threads counts too\n";
  }
  return text;
}

json::object body_of(const MeasureOptions& options) {
  json::object body{{"seconds", options.seconds}};
  if (!options.vcpus.empty()) body["vcpus"] = options.vcpus;
  return body;
}

}  // namespace

Exit run(const MeasureOptions& options, Output& output) {
  const Daemon daemon(options.socket);
  const auto id = find_sandbox(daemon, options.sandbox);
  if (!id) return output.fail(id.error());
  const auto result = daemon.post("/v1/sandboxes/" + encode(*id) + "/measure", body_of(options));
  if (!result) return output.fail(result.error());
  output.show(*result, [&] { return describe_latencies(*result); });
  return Exit::kDone;
}

}  // namespace ka::cli
