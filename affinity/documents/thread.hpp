// SPDX-License-Identifier: Apache-2.0
// A thread in requests to the helper, and in its records.
#pragma once

#include <boost/json/object.hpp>

#include "base/json/json.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::documents {

/// {"pid": 4711, "tid": 4712, "start_time": 99}
boost::json::object to_json(const policy::ThreadKey& thread);
policy::ThreadKey read_thread(base::Fields& fields);

}  // namespace ka::documents
