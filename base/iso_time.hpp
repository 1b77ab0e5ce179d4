// SPDX-License-Identifier: Apache-2.0
// Times as documents have them: those of our API, and of Kubernetes.
#pragma once

#include <chrono>
#include <string>

namespace ka::base {

/// UTC (RFC 3339): "2026-01-31T12:00:00.123Z".
std::string iso_time(std::chrono::system_clock::time_point time);

}  // namespace ka::base
