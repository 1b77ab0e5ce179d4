// SPDX-License-Identifier: Apache-2.0
// The command `measure`.
#include <fmt/core.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <boost/system/error_code.hpp>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/client/sandbox_name.hpp"
#include "affinity/cli/status/describe.hpp"
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

/// "  vCPU 1", and a line for each bucket: its end, how many wake-ups were no later, and a bar.
std::string histogram(const json::value& vcpu) {
  constexpr double kWidest = 40;
  long long most = 1;
  std::vector<std::pair<double, long long>> buckets;
  for (const json::value& bucket : array_of(vcpu, "histogram")) {
    const auto* pair = bucket.if_array();
    if (pair == nullptr || pair->size() != 2) continue;
    boost::system::error_code wrong;
    const auto end = (*pair)[0].to_number<double>(wrong);
    const auto count = wrong ? 0 : (*pair)[1].to_number<long long>(wrong);
    if (wrong) continue;
    buckets.emplace_back(end, count);
    most = std::max(most, count);
  }
  std::string text =
      fmt::format("\nvCPU {}, wake-ups that were at most so late:\n", number_of(vcpu, "vcpu"));
  for (const auto& [end, count] : buckets) {
    const double share = static_cast<double>(count) / static_cast<double>(most);
    const auto width = static_cast<std::size_t>(std::ceil(share * kWidest));
    text += fmt::format("{:>10.1f} us {:>9}  {}\n", end, count, std::string(width, '#'));
  }
  return buckets.empty() ? std::string() : text;
}

}  // namespace

std::string describe_latencies(const json::value& result) {
  std::string text =
      fmt::format("{:>4}  {:<12} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9}\n", "vCPU", "CPUs",
                  "wake-ups", "p50 us", "p90", "p99", "p99.9", "max", "stolen ms");
  for (const json::value& vcpu : array_of(result, "vcpus")) text += row(vcpu);
  text += "* dedicated\n";
  if (!flag_of(result, "realtime")) {
    text += "SCHED_FIFO was refused in the guest: waiting for its own threads counts too\n";
  }
  for (const json::value& vcpu : array_of(result, "vcpus")) text += histogram(vcpu);
  return text;
}

namespace {

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
