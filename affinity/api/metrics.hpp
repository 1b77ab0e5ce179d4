// SPDX-License-Identifier: Apache-2.0
// Numbers for Prometheus, read from line and board when a client asks.
#pragma once

#include <string>

#include "affinity/line/cpu_interruptions.hpp"

namespace ka::line {
class Node;
class VcpuWaits;
}  // namespace ka::line

namespace ka::api {

/// The text format (version 0.0.4).
std::string metrics_text(const line::Node& node, line::VcpuWaits& waits,
                         const line::CpuInterruptions::Totals& interruptions);

inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace ka::api
