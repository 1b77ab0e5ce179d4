// SPDX-License-Identifier: Apache-2.0
// Sources as JSON.
#pragma once

#include <boost/json/array.hpp>

#include "affinity/board/board.hpp"

namespace ka::api {

/// The sources: which are connected, what they report, and which are read only at each drift check,
/// with what remedies that.
boost::json::array sources_to_json(const board::Board& board);

}  // namespace ka::api
