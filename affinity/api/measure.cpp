// SPDX-License-Identifier: Apache-2.0
#include "affinity/api/measure.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <string>

#include "base/json/json.hpp"

namespace ka::api {
namespace {

namespace json = boost::json;
using base::ErrorCode;
using policy::VcpuFacts;

const policy::plan::VcpuPlan* plan_of(const line::SandboxView& view, int vcpu) {
  const auto found = std::ranges::find(view.plan.vcpus, vcpu, &policy::plan::VcpuPlan::index);
  return found == view.plan.vcpus.end() ? nullptr : &*found;
}

bool is_dedicated(const line::SandboxView& view, int vcpu) {
  const auto* plan = plan_of(view, vcpu);
  return plan != nullptr && plan->role == policy::plan::VcpuRole::kDedicated;
}

policy::VcpuSet wanted_vcpus(const line::SandboxView& view) {
  policy::VcpuSet all, dedicated;
  for (const VcpuFacts& vcpu : view.vcpus) {
    all.add(vcpu.index);
    if (is_dedicated(view, vcpu.index)) dedicated.add(vcpu.index);
  }
  return dedicated.empty() ? all : dedicated;
}

base::Result<void> add_ids(const line::SandboxView& view, const policy::VcpuSet& vcpus,
                           guest::LatencyRequest& request) {
  for (const int index : vcpus) {
    const auto vcpu = std::ranges::find(view.vcpus, index, &VcpuFacts::index);
    if (vcpu == view.vcpus.end()) {
      return base::fail(ErrorCode::kInvalid, "vcpus: there is no vCPU " + std::to_string(index));
    }
    if (!vcpu->apic_id) {
      return base::fail(ErrorCode::kUnavailable,
                        "vCPU " + std::to_string(index) + ": no source reports its APIC id");
    }
    request.hardware_ids.push_back(static_cast<std::uint64_t>(*vcpu->apic_id));
  }
  if (request.hardware_ids.size() <= guest::kMaxMeasuredCpus && !vcpus.empty()) return {};
  return base::fail(ErrorCode::kInvalid, "vcpus: 1 to " + std::to_string(guest::kMaxMeasuredCpus) +
                                             " can be measured at once, not " +
                                             std::to_string(vcpus.size()));
}

/// A tenth is more than a bucket tells.
double micros(std::uint64_t nanoseconds) {
  return std::round(static_cast<double>(nanoseconds) / 100) / 10;
}

json::array histogram_of(const guest::LatencyHistogram& latencies) {
  json::array histogram;
  for (const auto& [bucket, count] : latencies.counts()) {
    const double end = static_cast<double>(guest::LatencyHistogram::end_of(bucket)) / 1000;
    histogram.push_back(json::array{end, count});
  }
  return histogram;
}

json::object to_json(const guest::CpuLatency& cpu) {
  // The end of the last one's bucket may lie beyond the longest.
  const auto percentile = [&cpu](double share) {
    return micros(std::min(cpu.latencies.percentile(share), cpu.longest));
  };
  return {{"samples", cpu.latencies.total()}, {"p50_us", percentile(0.5)},
          {"p90_us", percentile(0.9)},        {"p99_us", percentile(0.99)},
          {"p999_us", percentile(0.999)},     {"max_us", micros(cpu.longest)},
          {"stolen_us", cpu.stolen / 1000},   {"histogram", histogram_of(cpu.latencies)}};
}

}  // namespace

base::Result<guest::LatencyRequest> read_measure(const line::SandboxView& view,
                                                 std::string_view body) {
  const auto document = base::parse_json(body.empty() ? "{}" : body, "body");
  if (!document) return unexpected(document.error());
  base::InputError input_error;
  base::Fields fields(*document, "", input_error);
  guest::LatencyRequest request;
  int seconds = 10, interval = 1000;
  policy::VcpuSet vcpus;
  if (fields.read("seconds", seconds) &&
      (seconds < 1 || seconds > guest::kLongestMeasurement.count())) {
    fields.reject("seconds", "must be 1 to " + std::to_string(guest::kLongestMeasurement.count()));
  }
  const std::int64_t shortest = guest::kShortestInterval.count();
  const std::int64_t longest = guest::kLongestInterval.count();
  if (fields.read("interval_us", interval) && (interval < shortest || interval > longest)) {
    fields.reject("interval_us", "must be " + std::to_string(shortest) + " to " +
                                     std::to_string(longest) + " microseconds");
  }
  if (!fields.read("vcpus", vcpus)) vcpus = wanted_vcpus(view);
  fields.finish();
  if (!input_error.empty()) return unexpected(input_error.error());
  request.duration = std::chrono::seconds(seconds);
  request.interval = std::chrono::microseconds(interval);
  if (auto good = add_ids(view, vcpus, request); !good) return unexpected(good.error());
  return request;
}

json::object to_json(const line::SandboxView& view, const guest::LatencyRequest& request,
                     const guest::Latencies& latencies) {
  json::array vcpus;
  for (const guest::CpuLatency& cpu : latencies.cpus) {
    const auto id = static_cast<int>(cpu.hardware_id);
    const auto vcpu = std::ranges::find(view.vcpus, std::optional(id), &VcpuFacts::apic_id);
    if (vcpu == view.vcpus.end()) continue;
    const auto* plan = plan_of(view, vcpu->index);
    json::object one{{"vcpu", vcpu->index},
                     {"cpus", plan == nullptr ? "" : policy::format_list(plan->cpus)},
                     {"dedicated", is_dedicated(view, vcpu->index)}};
    for (auto& [key, value] : to_json(cpu)) one[key] = std::move(value);
    vcpus.push_back(std::move(one));
  }
  return {{"id", view.pod.id},
          {"seconds", static_cast<double>(request.duration.count()) / 1000},
          {"interval_us", request.interval.count()},
          {"realtime", latencies.realtime},
          {"vcpus", std::move(vcpus)}};
}

}  // namespace ka::api
