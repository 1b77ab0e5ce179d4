// SPDX-License-Identifier: Apache-2.0
// Metrics that are computed when the page is read.
#pragma once

#include "affinity/api/metrics_page.hpp"
#include "affinity/line/node.hpp"

namespace ka::api {

void add_gauges(Page& page, const line::Node& node);

}  // namespace ka::api
