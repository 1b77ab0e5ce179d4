// SPDX-License-Identifier: Apache-2.0
// Times as the API writes them.
#pragma once

#include <chrono>
#include <string>

namespace ka::api {

/// UTC: "2026-01-31T12:00:00.123Z".
std::string iso_time(std::chrono::system_clock::time_point time);

}  // namespace ka::api
