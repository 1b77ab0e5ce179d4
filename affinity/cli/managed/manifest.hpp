// SPDX-License-Identifier: Apache-2.0
// A pod's manifest, as far as its CPUs go.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace ka::cli {

/// A quantity of Kubernetes (apimachinery's resource.Quantity) in thousandths, rounded up: "2",
/// "0.5", "1500m", "4Gi", "2e3". kInvalid for what is none, is negative, or does not fit.
base::Result<std::int64_t> parse_quantity(const std::string& text);

/// The body of POST /v1/trials for a pod's manifest in JSON. Init containers come first;
/// restartable ones stay. kInvalid names the field.
base::Result<boost::json::object> trial_of(const boost::json::value& manifest);

}  // namespace ka::cli
