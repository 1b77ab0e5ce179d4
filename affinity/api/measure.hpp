// SPDX-License-Identifier: Apache-2.0
// POST /v1/sandboxes/ID/measure: what to measure in a guest, and the result as JSON.
#pragma once

#include <boost/json/object.hpp>
#include <string_view>

#include "affinity/line/views.hpp"
#include "base/result.hpp"
#include "guest-agent/protocol/latency.hpp"

namespace ka::api {

/// `body`: {"seconds":10,"interval_us":1000,"vcpus":"2-3"}, each of it optional. Without vCPUs the
/// dedicated ones are meant, without such all. kInvalid for a vCPU that the sandbox does not have,
/// and kUnavailable where no source knows by which id the guest's kernel knows one.
base::Result<guest::LatencyRequest> read_measure(const line::SandboxView& view,
                                                 std::string_view body);

/// {"id":...,"seconds":10.0,"interval_us":1000,"realtime":true,"vcpus":[{"vcpu":2,"cpus":"5",
/// "dedicated":true,"samples":9998,"p50_us":3.2,...,"max_us":41.0,"stolen_us":0,"histogram":
/// [[3.3,8012],...]},...]}: the histogram has the upper bound of each bucket in microseconds and
/// how many latencies are in it.
boost::json::object to_json(const line::SandboxView& view, const guest::LatencyRequest& request,
                            const guest::Latencies& latencies);

}  // namespace ka::api
