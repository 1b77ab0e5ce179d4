// SPDX-License-Identifier: Apache-2.0
// The JSON form of CPU allocations, and the sentences that explain one.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>

#include "policy/allocate/allocate.hpp"

namespace ka::words {

/// {"phase":"Filter","step":"reserved","what":"removed","cpus":"0","text":"..."}; absent: what the
/// finding does not say.
boost::json::object to_json(const policy::allocate::Finding& finding,
                            const policy::allocate::Machine& machine);

/// One sentence without a full stop: "removed CPU 0".
std::string sentence(const policy::allocate::Finding& finding,
                     const policy::allocate::Machine& machine);

}  // namespace ka::words
