// SPDX-License-Identifier: Apache-2.0
// The JSON form of plans, as `kata-affinityctl plan` prints them and reads them back.
#pragma once

#include <boost/json/fwd.hpp>

#include "base/result.hpp"
#include "policy/plan/plan.hpp"

namespace ka::documents {

/// {"sandboxes":[...]}. Beside the documented fields: "pod_uid" and a container's "name" where they
/// are known (a later plan finds the previous one by them), "housekeeping", "iothread" (the set of
/// iothreads whose id is not known), and "placed":false for a vCPU that is left alone.
boost::json::object to_json(const policy::plan::Plan& plan);
boost::json::object to_json(const policy::plan::SandboxPlan& plan);

/// The same without its sentences: all that a later plan needs of it.
boost::json::object placements_to_json(const policy::plan::SandboxPlan& plan);

/// Reads such a document, all but its sentences: reasons and warnings come back empty.
base::Result<policy::plan::Plan> plan_from_json(const boost::json::value& document);
base::Result<policy::plan::SandboxPlan> sandbox_plan_from_json(const boost::json::value& document);

}  // namespace ka::documents
