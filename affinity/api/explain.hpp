// SPDX-License-Identifier: Apache-2.0
// Why a sandbox is placed as it is: the facts with the source of each, the rules that were applied,
// and the result, in sentences.
#pragma once

#include <boost/json/fwd.hpp>

#include "affinity/line/views.hpp"

namespace ka::line {
class Node;
}

namespace ka::api {

/// {"id", "facts":[{"text","source"}], "rules":[{"code","text","subject","cpus"}],
/// "results":[text], "warnings":[as rules]}
boost::json::object explain(const line::Node& node, const line::SandboxView& view);

}  // namespace ka::api
