// SPDX-License-Identifier: Apache-2.0
// What setup found, proposes and wrote, as text and JSON.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>

#include "affinity/cli/setup/setup.hpp"

namespace ka::cli {

/// The document of `setup --json`. `done`: the files were written.
boost::json::object to_json(const SetupPlan& plan, bool done);

std::string describe(const SetupPlan& plan, bool done);

}  // namespace ka::cli
