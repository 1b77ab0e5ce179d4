// SPDX-License-Identifier: Apache-2.0
// The grade of a sandbox, or of a pod without a VM, as status and map name it.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>

namespace ka::cli {

/// "quiet", "realtime", "quiet: not realtime: ...", "NOT quiet: no helper", "quiet: its annotation
/// ..."; empty: best-effort, as configured.
std::string grade_text(const boost::json::value& pod);

}  // namespace ka::cli
