// SPDX-License-Identifier: Apache-2.0
// Who owns a CPU, as the API names it.
#pragma once

#include <boost/json/fwd.hpp>

#include "policy/ledger/ledger.hpp"

namespace ka::api {

/// An exclusive container, of any runtime.
boost::json::object owner_to_json(const policy::ledger::PodRecord& pod,
                                  const policy::ContainerFacts& container);
/// One that only kubelet names: it writes its file before it requests the pod from the runtime.
boost::json::object owner_to_json(const policy::ledger::Claim& claim);
/// A prepared claim that no container holds.
boost::json::object owner_to_json(const policy::ledger::PreparedClaim& claim);

}  // namespace ka::api
