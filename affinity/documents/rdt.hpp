// SPDX-License-Identifier: Apache-2.0
// Parts of documents about RDT: of requests to the helper, and of its records.
#pragma once

#include <boost/json/object.hpp>
#include <cstddef>

#include "base/json/json.hpp"
#include "policy/facts/rdt.hpp"

namespace ka::documents {

/// {"l3": "50%", "mba": "20%"}: what is absent is not limited.
boost::json::object to_json(const policy::RdtShares& shares);
/// Reads the keys of such an object.
policy::RdtShares read_shares(base::Fields& fields);

}  // namespace ka::documents
