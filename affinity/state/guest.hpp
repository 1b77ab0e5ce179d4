// SPDX-License-Identifier: Apache-2.0
// Requests to a guest, and the order of its vCPUs, in the text form of a state file.
#pragma once

#include <boost/json/fwd.hpp>

#include "affinity/state/store.hpp"
#include "base/json/json.hpp"

namespace ka::state {

boost::json::object to_json(const SavedGuest& guest);
SavedGuest read_guest(const boost::json::value& value, base::InputError& input_error);

}  // namespace ka::state
