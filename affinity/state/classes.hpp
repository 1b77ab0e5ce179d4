// SPDX-License-Identifier: Apache-2.0
// Resource classes in the text form of a state file.
#pragma once

#include <boost/json/fwd.hpp>

#include "affinity/state/store.hpp"
#include "base/json/json.hpp"

namespace ka::state {

boost::json::object to_json(const SavedClasses& classes);
SavedClasses read_classes(const boost::json::value& value, base::InputError& input_error);

}  // namespace ka::state
