// SPDX-License-Identifier: Apache-2.0
// grade = "quiet" as JSON and metrics.
#pragma once

#include <boost/json/fwd.hpp>

#include "affinity/api/metrics_page.hpp"
#include "affinity/line/node.hpp"
#include "affinity/line/views.hpp"

namespace ka::api {

/// Adds the fields `grade`, `grade_problem` and `partition` to a sandbox.
void add_grade(boost::json::object& sandbox, const line::SandboxView& view);

/// The pods without a VM that have CPUs of their own and whose grade is quiet.
boost::json::array quiet_pods_to_json(const line::Node& node);

/// What the host is kept off, and what of it stays.
boost::json::object quiet_to_json(const board::QuietView& quiet);

void add_quiet_gauges(Page& page, const line::Node& node);

}  // namespace ka::api
